#include "diagnose/candidate.h"

#include <fmt/ranges.h>

#include "base/format.h"

namespace falcon::diagnose {

std::string nameOf(const Candidate& candidate) {
  switch (candidate.kind) {
    case CandidateKind::rank:
      return fmt::format("rank {}", candidate.rank);
    case CandidateKind::link:
      return fmt::format("link {} -> {}", candidate.link.from, candidate.link.to);
    case CandidateKind::group:
      return fmt::format("the group of ranks {}", fmt::join(candidate.ranks, ", "));
    case CandidateKind::interfaceOut:
    case CandidateKind::interfaceIn:
      return fmt::format("the interface of {} {}, {}", candidate.ranks.size() == 1 ? "rank" : "ranks",
                         fmt::join(candidate.ranks, ", "),
                         candidate.kind == CandidateKind::interfaceOut ? "outwards" : "inwards");
  }
  return "?";
}

}  // namespace falcon::diagnose
