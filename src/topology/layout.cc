#include "topology/layout.h"

namespace falcon::topology {

std::vector<Rank> Layout::dataGroup(Rank member) const {
  Coordinates at = coordinatesOf(member);
  std::vector<Rank> group;
  for (at.data = 0; at.data < dataSize; ++at.data) group.push_back(rankAt(at));
  return group;
}

std::vector<Rank> Layout::pipelineGroup(Rank member) const {
  Coordinates at = coordinatesOf(member);
  std::vector<Rank> group;
  for (at.pipeline = 0; at.pipeline < pipelineSize; ++at.pipeline) group.push_back(rankAt(at));
  return group;
}

std::vector<Rank> Layout::tensorGroup(Rank member) const {
  Coordinates at = coordinatesOf(member);
  std::vector<Rank> group;
  for (at.tensor = 0; at.tensor < tensorSize; ++at.tensor) group.push_back(rankAt(at));
  return group;
}

std::vector<Rank> Layout::replica(int data) const {
  std::vector<Rank> group;
  for (Rank rank = rankAt({data, 0, 0}); rank < rankAt({data + 1, 0, 0}); ++rank) group.push_back(rank);
  return group;
}

}  // namespace falcon::topology
