#include <bit>

#include "collectives/algorithm.h"

namespace falcon::collectives {
namespace {

/// The ranks in the game, a power of two. Where there are more, the first ones come in pairs of which one plays for
/// both.
struct Players {
  int count;
  int pairs;
  explicit Players(int size)
      : count(static_cast<int>(std::bit_floor(static_cast<unsigned>(size)))), pairs(size - count) {}
  bool isSpectator(Rank rank) const { return rank < 2 * pairs && rank % 2 == 0; }
  int playerOf(Rank rank) const { return rank < 2 * pairs ? rank / 2 : rank - pairs; }
  Rank rankOf(int player) const { return player < pairs ? 2 * player + 1 : player + pairs; }
};

/// Partners swap what they have and both reduce it: log n hops. Each reduces ranks in their order, so all get the same
/// bits.
void appendDoublingAllReduce(const Geometry& geometry, Range round, std::vector<Step>& steps) {
  if (geometry.size == 1) return localCopy.appendRound(geometry, round, steps);
  const Players players(geometry.size);
  Step step;
  step.count = round.size();
  step.sourceOffset = step.destinationOffset = round.begin;
  if (players.isSpectator(geometry.rank)) return appendThereAndBack(geometry.rank + 1, step, steps);

  const bool playsForTwo = geometry.rank < 2 * players.pairs;
  step.source = Where::input;
  if (playsForTwo) {
    step.receiveFrom = geometry.rank - 1;
    step.destination = Where::output;
    steps.push_back(step);
    step.source = Where::output;
  }
  const int self = players.playerOf(geometry.rank);
  for (int distance = 1; distance < players.count; distance *= 2) {
    const int partner = self ^ distance;
    step.receiveFrom = -1;
    step.sendTo = players.rankOf(partner);
    step.destination = Where::none;
    steps.push_back(step);
    step.receiveFrom = step.sendTo;
    step.sendTo = -1;
    step.destination = Where::output;
    step.ownFirst = self < partner;
    step.last = 2 * distance == players.count;
    steps.push_back(step);
    step.source = Where::output;
    step.last = false;
  }
  if (playsForTwo)
    steps.push_back(
        {.sendTo = geometry.rank - 1, .source = Where::output, .sourceOffset = round.begin, .count = round.size()});
}

}  // namespace

const Algorithm doublingAllReduce{"doubling", transport::Lane::direct, oneChunk, appendDoublingAllReduce};

}  // namespace falcon::collectives
