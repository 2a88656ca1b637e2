#include "base/event.h"

#include <iterator>

#include "base/format.h"

namespace falcon {

std::string nameOf(const Culprit& culprit) {
  switch (culprit.kind) {
    case CulpritKind::rank:
      return fmt::format("rank {}", culprit.rank);
    case CulpritKind::link:
      return fmt::format("link {} {} {}", culprit.link.from, culprit.bothWays ? "<->" : "->", culprit.link.to);
    case CulpritKind::host:
      return "host " + culprit.host;
    case CulpritKind::none:
      break;
  }
  return "none";
}

const char* nameOf(EventKind kind) {
  constexpr const char* names[] = {"job-started",
                                   "period-known",
                                   "baseline-taken",
                                   "onset",
                                   "worsening",
                                   "easing",
                                   "suspicion",
                                   "trap-closed",
                                   "trap-opened",
                                   "trap-timed-out",
                                   "verdict",
                                   "inconclusive",
                                   "mitigation-advised",
                                   "mitigation-applied",
                                   "mitigation-undone",
                                   "mitigation-refused",
                                   "relief",
                                   "switched-off",
                                   "job-ended",
                                   "pattern-changed",
                                   "suspended",
                                   "resumed",
                                   "minor",
                                   "minor-over"};
  static_assert(std::size(names) == eventKindCount);
  return names[static_cast<int>(kind)];
}

}  // namespace falcon
