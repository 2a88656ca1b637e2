#include "inject/other_load.h"

#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <string_view>

#include "inject/outcome.h"

namespace falcon::tools {
namespace {

constexpr double shortest = 0.5;      // s; processor time is counted in hundredths
constexpr double contention = 0.15;   // cores; a tenth of one is what a machine does by itself
constexpr double spokenOfWithin = 6;  // s, from contention to what is said of it

/// Seconds that all processors together were busy, or that the hypervisor gave to other machines.
double busySeconds() {
  std::ifstream stat("/proc/stat");
  std::string cpu;
  double user = 0, nice = 0, system = 0, idle = 0, waiting = 0, hard = 0, soft = 0, stolen = 0;
  stat >> cpu >> user >> nice >> system >> idle >> waiting >> hard >> soft >> stolen;
  return (user + nice + system + stolen) / static_cast<double>(::sysconf(_SC_CLK_TCK));
}

}  // namespace

double OtherUses::cores(double from, double to) const {
  double used = 0, length = 0;
  for (const OtherUse& each : uses_) {
    const double common = std::min(each.end, to) - std::max(each.start, from);
    if (common <= 0) continue;
    used += common * each.cores;
    length += common;
  }
  return length > 0 ? used / length : 0;
}

double OtherUses::risen(double before, double from, double to) const {
  double most = before;
  for (const OtherUse& each : uses_)
    if (each.end > from && each.start < to) most = std::max(most, each.cores);
  return most - before;
}

OtherLoad::OtherLoad(const JobDescription& job) : busy_(busySeconds()), since_(momentNow().monotonic), looked_(since_) {
  for (const RankDescription& rank : job.ranks) ranks_.emplace_back(rank.process);
}

double OtherLoad::cores() {
  const double now = momentNow().monotonic, busy = busySeconds();
  double cores = (busy - busy_) / (now - since_);
  for (ProcessorUse& rank : ranks_) {
    cores -= rank.cores().value_or(0);
    rank.restart();
  }
  busy_ = busy;
  since_ = now;
  return cores;
}

void OtherLoad::look() {
  const double now = momentNow().monotonic;
  if (now - looked_ < shortest) return;
  uses_.add({looked_, now, cores()});
  looked_ = now;
}

bool isOfOtherPrograms(const std::string& kind, const Culprit& culprit, double time, const OtherUses& uses,
                       double healthyUntil) {
  const bool ofHost = culprit.kind == CulpritKind::host;
  if (ofHost && kind == "relief") return true;
  static constexpr std::string_view ofNobody[] = {"onset", "worsening", "easing", "inconclusive"};
  const bool named = culprit.kind != CulpritKind::none;
  if (!ofHost && (named || std::find(std::begin(ofNobody), std::end(ofNobody), kind) == std::end(ofNobody)))
    return false;
  return uses.risen(uses.cores(0, healthyUntil), time - spokenOfWithin, time) >= contention;
}

}  // namespace falcon::tools
