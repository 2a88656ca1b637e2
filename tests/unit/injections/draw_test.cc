#include "injections/draw.h"

#include <gtest/gtest.h>

#include <map>

namespace falcon::injections {
namespace {

const demo::JobShape drawnShape;

TEST(Draw, GivesEveryKindAndOnlyWhatTheJobHas) {
  std::map<std::string, int> kinds;
  for (int number = 0; number < 400; ++number) {
    const Drawn drawn = draw(7, number, drawnShape);
    std::string kind;
    for (const demo::Injection& each : drawn) {
      EXPECT_GE(each.factor, 1.3);
      EXPECT_LE(each.factor, 3);
      EXPECT_EQ(each.length, 0);
      if (each.culprit.kind == CulpritKind::rank) {
        kind += "rank ";
        EXPECT_GE(each.culprit.rank, 0);
        EXPECT_LT(each.culprit.rank, drawnShape.ranks);
        continue;
      }
      kind += each.culprit.bothWays ? "link both ways " : "link ";
      EXPECT_NE(each.culprit.link.from, each.culprit.link.to);
      EXPECT_EQ(each.culprit.link.from % drawnShape.pipelineParallel,
                each.culprit.link.to % drawnShape.pipelineParallel);
    }
    if (drawn.size() == 2) {
      EXPECT_NE(drawn[0].culprit, drawn[1].culprit) << number;
    }
    ++kinds[kind];
  }
  for (const char* kind : {"", "rank ", "link ", "link both ways ", "rank rank ", "rank link ", "rank link both ways "})
    EXPECT_GT(kinds[kind], 0) << kind;
  EXPECT_EQ(kinds.size(), 7u);
}

TEST(Draw, IsTheSameWhateverWasDrawnBefore) {
  const auto text = [](int number) { return nameOf(culpritsOf(draw(3, number, drawnShape))); };
  std::vector<std::string> forwards, backwards(20);
  for (int number = 0; number < 20; ++number) forwards.push_back(text(number));
  for (int number = 19; number >= 0; --number) backwards[static_cast<std::size_t>(number)] = text(number);
  EXPECT_EQ(forwards, backwards);
  EXPECT_NE(nameOf(culpritsOf(draw(4, 0, drawnShape))) + nameOf(culpritsOf(draw(4, 1, drawnShape))) +
                nameOf(culpritsOf(draw(4, 2, drawnShape))),
            forwards[0] + forwards[1] + forwards[2]);
}

TEST(Draw, NamesBothWaysAlikeFromEitherEnd) {
  const Culprit one{.kind = CulpritKind::link, .link = {6, 0}, .bothWays = true};
  const Culprit other{.kind = CulpritKind::link, .link = {0, 6}, .bothWays = true};
  EXPECT_EQ(nameOf({one}), nameOf({other}));
  EXPECT_EQ(nameOf({one, other}), "link 0 <-> 6");
  EXPECT_EQ(nameOf(std::vector<Culprit>()), "none");
}

}  // namespace
}  // namespace falcon::injections
