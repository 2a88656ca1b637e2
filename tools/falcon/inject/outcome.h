// What an injection did, as value.
#pragma once

#include <cstdint>
#include <string>

#include "base/types.h"

namespace falcon::tools {

/// One moment on both clocks, so that it can be compared with a job's events.
struct Moment {
  double monotonic = 0;  ///< CLOCK_MONOTONIC, seconds
  double wall = 0;       ///< seconds since 1970
};
Moment momentNow();
/// Seconds of CLOCK_MONOTONIC, as in events.
inline double monotonicNow() {
  return momentNow().monotonic;
}

enum class InjectionKind : std::uint8_t { slowRank, slowLink, memoryHog, hang };

/// What passed the class that limits one direction of a link.
struct LinkTraffic {
  std::uint64_t bytes = 0;
  std::uint64_t packets = 0;
  std::uint64_t held = 0;  ///< times that the limit made something wait
};

struct Outcome {
  InjectionKind kind = InjectionKind::slowRank;
  Rank rank = -1;         ///< slowRank, memoryHog, hang
  Link link;              ///< slowLink
  bool bothWays = false;  ///< slowLink
  Moment started;
  Moment confirmed;  ///< the first look at the counters that showed it effective; zeros: none did
  Moment ended;

  double quota = 0;        ///< slowRank: cores allowed
  double coresBefore = 0;  ///< slowRank, memoryHog, hang: the rank's processor use, cores
  double coresDuring = 0;
  std::uint64_t throttledPeriods = 0;  ///< slowRank by quota
  std::uint64_t stops = 0;             ///< slowRank without a cgroup; hang: 1 where it was seen stopped
  double bitsPerSecond = 0;            ///< slowLink: the limit
  bool insideTransport = false;        ///< slowLink: the job's own socket transport holds back and counts; no packets
  LinkTraffic there;                   ///< slowLink: from -> to
  LinkTraffic back;                    ///< slowLink both ways: to -> from
  std::uint64_t hogBytes = 0;          ///< memoryHog
  double iterationBefore = 0;          ///< seconds, where the job has a call log; else 0
  std::int64_t iterationsEnded = 0;    ///< while it was in force
  double iterationDuring = 0;          ///< seconds, the last of these; 0: none
};

/// Whether the victim really was slowed, from the counters alone.
bool effective(const Outcome& outcome);
/// One sentence with the numbers; says what is missing where it was not effective.
std::string explain(const Outcome& outcome);
std::string toJson(const Outcome& outcome);

}  // namespace falcon::tools
