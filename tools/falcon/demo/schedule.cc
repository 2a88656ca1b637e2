#include "demo/schedule.h"

#include "demo/dice.h"

namespace falcon::demo {

Culprit drawRank(Dice& dice, const JobShape& shape) {
  return {.kind = CulpritKind::rank, .rank = dice.below(shape.ranks)};
}

Culprit drawLink(Dice& dice, const JobShape& shape) {
  const int stage = dice.below(shape.pipelineParallel);
  const int replica = dice.below(shape.dataParallel);
  const int next = (replica + 1) % shape.dataParallel;
  Culprit culprit{.kind = CulpritKind::link};
  culprit.link = {replica * shape.pipelineParallel + stage, next * shape.pipelineParallel + stage};
  culprit.bothWays = dice.below(2) == 1;
  return culprit;
}

std::vector<Injection> drawSchedule(std::uint64_t seed, const JobShape& shape) {
  Dice dice(seed);
  Injection rank{.culprit = drawRank(dice, shape), .factor = dice.between(1.7, 2.8)};
  Injection link{.culprit = drawLink(dice, shape), .factor = dice.between(1.6, 2.8)};
  std::vector<Injection> injections = dice.below(2) ? std::vector{rank, link} : std::vector{link, rank};
  // The first fifth of the run teaches what healthy is. `falcon inject` watches its victim for up to 5 s first, so an
  // injection is over 32 s after its start at the latest, and 20 s are left to see that and undo what was done.
  const double unit = shape.seconds / JobShape().seconds;
  injections[0].start = unit * dice.between(28, 33);
  injections[0].length = unit * 27;
  injections[1].start = unit * dice.between(85, 88);
  injections[1].length = unit * 27;
  return injections;
}

}  // namespace falcon::demo
