#include <gtest/gtest.h>

#include "report/heat_map.h"
#include "report/wait_view.h"

namespace falcon::report_page {
namespace {

int count(const std::string& text, const std::string& part) {
  int found = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++found;
  return found;
}

TEST(HeatMap, LeavesBlankWhatWasNotMeasuredAndColoursWhatStandsOut) {
  const std::string svg =
      heatMapSvg({{"rank 0", "rank 1", "rank 2"}, {"a<b", "c"}, {{0.1, -1}, {0.1, 0.5}, {0.4, -1}}});
  EXPECT_EQ(count(svg, "class=\"cell\""), 4);
  EXPECT_EQ(count(svg, "a&lt;b"), 1 + 3);
  EXPECT_EQ(count(svg, "fill:#c0392b;fill-opacity:0.80"), 1) << "rank 2, a third of the time above the median";
  EXPECT_EQ(count(svg, "fill-opacity:0.00"), 3);
}

TEST(WaitView, HasEveryRankAndTheArrowsBetweenThem) {
  const std::string svg =
      waitViewSvg({{{0, 0, 0, 0}, {1, 0, 1, 0}, {2, 1, 0, 0}, {3, 1, 1, 0}}, {{0, 1, 0.25}, {2, 1, 0.1}, {3, 9, 0.5}}});
  EXPECT_EQ(count(svg, "class=\"rank\""), 4);
  EXPECT_EQ(count(svg, "class=\"wait\""), 2) << "rank 9 is not in the picture";
  EXPECT_EQ(count(svg, "rank 0 waits for rank 1: 25.0 % of the time"), 1);
  EXPECT_EQ(count(svg, "rank 1: DP 0, PP 1, TP 0; others waited for it 35.0 %"), 1);
  EXPECT_EQ(count(svg, ">DP 1<"), 1);
}

}  // namespace
}  // namespace falcon::report_page
