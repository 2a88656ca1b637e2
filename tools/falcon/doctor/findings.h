// What a doctor's job measured, and who is slow. Pure.
#pragma once

#include <string>
#include <vector>

#include "doctor/gpu_tests.h"
#include "validate/cause.h"
#include "validate/gpu_sample.h"
#include "validate/link_measurement.h"
#include "validate/link_plan.h"

namespace falcon::doctor {

/// What one rank measured alone, in one round. NaN: could not be measured.
struct RankSample {
  double gigaflops32 = validate::unknown;
  double gigaflops64 = validate::unknown;
  double memoryRate = validate::unknown;    ///< bytes per second
  double loopbackRate = validate::unknown;  ///< bytes per second, over its own address
  validate::CauseEvidence evidence;         ///< of its compute tests
};
std::string encode(const RankSample& sample);
Result<RankSample> decodeSample(std::string_view bytes);

/// All-reduces of ranks under one switch.
struct GroupSample {
  std::string name;
  std::vector<Rank> ranks;
  std::vector<double> times;  ///< seconds of an all-reduce on its slowest rank, one a round
};

struct Measurements {
  std::vector<validate::RankSite> sites;         ///< by rank
  std::vector<std::vector<RankSample>> rounds;   ///< [round][rank]
  std::vector<validate::LinkMeasurement> links;  ///< of all rounds
  std::vector<GroupSample> groups;
  std::vector<GpuMeasurement> gpus;  ///< measured once, in the first round
  std::string product;               ///< whose matrix products rank 0 used
};

enum class Subject : std::uint8_t { processor, memory, loopback, gpu, link, group };
const char* nameOf(Subject subject);

struct Finding {
  Subject subject = Subject::processor;
  Rank rank = -1;  ///< processor, memory, loopback, gpu
  Link link;
  std::string group;
  double slowdown = 1;  ///< 0: it did not answer at all
  validate::Cause cause = validate::Cause::unexplained;
  std::string text;  ///< one sentence with the figures
};

struct Findings {
  std::vector<Finding> slow;
  std::vector<std::string> notes;  ///< what cannot be judged, or looks odd without being slow
  bool healthy() const { return slow.empty(); }
};

/// With the rules of validation: against the peers, beyond their scatter, ranks before links. One rank alone, or one
/// group alone, has no peers and is not judged.
Findings examine(const Measurements& measured);

/// A rank's figures over the rounds: medians.
RankSample typicalOf(const Measurements& measured, Rank rank);

/// "shared memory", "sockets in a node", "sockets between nodes".
std::string typeOf(const validate::LinkMeasurement& link, const std::vector<validate::RankSite>& sites);

struct TypeSummary {
  std::string type;
  int links = 0;
  double medianRate = 0;  ///< bytes per second
  Link slowest;
  double slowestRate = 0;
  double variation = validate::unknown;  ///< median over its links of standard deviation / mean over the rounds
};
std::vector<TypeSummary> summarize(const Measurements& measured);

}  // namespace falcon::doctor
