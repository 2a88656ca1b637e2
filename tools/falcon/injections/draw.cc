#include "injections/draw.h"

#include <algorithm>
#include <utility>

#include "demo/dice.h"

namespace falcon::injections {
namespace {

demo::Injection slowRank(demo::Dice& dice, const demo::JobShape& shape) {
  const Culprit culprit = demo::drawRank(dice, shape);
  return {.culprit = culprit, .factor = dice.between(1.7, 2.8)};
}

demo::Injection slowLink(demo::Dice& dice, const demo::JobShape& shape) {
  const Culprit culprit = demo::drawLink(dice, shape);
  return {.culprit = culprit, .factor = dice.between(1.6, 2.8)};
}

}  // namespace

Drawn draw(std::uint64_t seed, int number, const demo::JobShape& shape) {
  demo::Dice dice(seed * 1'000'003 + static_cast<std::uint64_t>(number));
  const int kind = dice.below(20);
  if (kind < 2) return {};
  if (kind < 9) return {slowRank(dice, shape)};
  if (kind < 17) return {slowLink(dice, shape)};
  Drawn two{slowRank(dice, shape), kind == 17 ? slowRank(dice, shape) : slowLink(dice, shape)};
  if (two[1].culprit.kind == CulpritKind::rank && two[1].culprit.rank == two[0].culprit.rank)
    two[1].culprit.rank = (two[1].culprit.rank + 1) % shape.ranks;
  return two;
}

std::vector<Culprit> culpritsOf(const Drawn& drawn) {
  std::vector<Culprit> culprits;
  for (const demo::Injection& each : drawn) culprits.push_back(each.culprit);
  return culprits;
}

std::string nameOf(const std::vector<Culprit>& culprits) {
  std::vector<std::string> names;
  for (Culprit culprit : culprits) {
    // Both ways is the same from either end.
    if (culprit.bothWays && culprit.link.from > culprit.link.to) std::swap(culprit.link.from, culprit.link.to);
    names.push_back(falcon::nameOf(culprit));
  }
  std::sort(names.begin(), names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : " and ") + name;
  return text.empty() ? "none" : text;
}

}  // namespace falcon::injections
