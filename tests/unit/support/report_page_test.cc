// The report page as text, and as a real browser draws it.
#include "report/page.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "unit/support/browser.h"

namespace falcon::report_page {
namespace {

using nlohmann::json;
using testing::HasSubstr;
using tests::haveBrowser;
using tests::openedByBrowser;
using tests::valueInBrowser;

/// What would end a script, begin a comment, an element or an entity, or leave a string, were it not escaped.
const std::string hostile = "</script><!--<b>&amp;\"'\\ \xe2\x80\xa8";

Page somePage() {
  Page page;
  page.title = "A <job> & its \"trouble\"";
  page.series = {{"with Falcon", "#2471a3", {}}};
  for (int i = 0; i < 100; ++i) page.series[0].points.push_back({i * 0.5, i > 50 && i < 80 ? 1000.0 : 500.0});
  page.marks = {{26, "onset", "slower", 4}, {30, "verdict", "rank 3"}, {32, "mitigation-applied", "split"}};
  page.spans = {{25, 40, "rank 3"}};
  page.tableHead = {"truth", "verdict"};
  page.tableRows = {{"rank 3", "rank 3"}};
  page.heat = HeatMap{"what it is",
                      {"rank 0", "rank 1", "rank 2"},
                      {"a<b", "AllReduce, data parallel 0"},
                      {{0.1, std::nullopt}, {0.1, 0.5}, {0.4, std::nullopt}},
                      {"data parallel 0: ranks 0, 1, 2"}};
  page.waits = WaitView{
      "what it is", {{0, 0, 0, 0}, {1, 0, 1, 0}, {2, 1, 0, 0}, {3, 1, 1, 0}}, {{3, 9, 0.5}, {0, 1, 0.25}, {2, 1, 0.1}}};
  return page;
}

/// 64 ranks, with everything that may crowd.
Page crowdedPage() {
  Page page;
  page.title = "64 ranks";
  page.series = {{"iteration time", "#2471a3", {}}};
  for (int i = 0; i < 20000; ++i) page.series[0].points.push_back({i * 0.5, 500.0 + i % 7});
  const char* kinds[] = {"onset", "suspicion", "trap-closed", "trap-opened", "verdict", "mitigation-applied", "relief"};
  for (int i = 0; i < 60; ++i)
    page.marks.push_back(
        {2000.0 + i / 7 * 300 + i % 7, kinds[i % 7], "communication among ranks 8 to 15 takes 4x", i % 5});
  for (int i = 0; i < 6; ++i) page.spans.push_back({2000.0 + i * 100, 2500.0 + i * 100, "link 12 -> 14, 4.2 MB/s"});
  HeatMap heat;
  WaitView waits;
  for (int column = 0; column < 19; ++column)
    heat.columns.push_back("ReduceScatter, tensor parallel " + std::to_string(column));
  for (int rank = 0; rank < 64; ++rank) {
    heat.rows.push_back("rank " + std::to_string(rank));
    heat.shares.emplace_back(19, 0.01 * (rank % 50));
    waits.ranks.push_back({rank, rank / 8, rank / 2 % 4, rank % 2});
    waits.arrows.push_back({rank, (rank + 1) % 64, 0.2});
  }
  page.heat = heat;
  page.waits = waits;
  return page;
}

size_t count(const std::string& text, const std::string& part) {
  size_t found = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++found;
  return found;
}

TEST(ReportPage, StandsAlone) {
  const std::string html = renderHtml(somePage());
  for (const char* outside : {"http://", "https://", "src=", "href=", "<link", "@import", "fetch(", "import("})
    EXPECT_EQ(count(html, outside), 0u) << outside;
  EXPECT_THAT(html, HasSubstr("default-src 'none'"));
  EXPECT_THAT(html, HasSubstr("<title>A &lt;job&gt; &amp; its &quot;trouble&quot;</title>"));
}

TEST(ReportPage, NoTextLeavesTheDataThatItStandsIn) {
  Page page = somePage();
  page.title = page.subtitle = page.marks[0].text = page.heat->columns[0] = page.notes.emplace_back() = hostile;
  const std::string data = pageJson(page);
  EXPECT_EQ(count(data, "<"), 0u);
  EXPECT_EQ(json::parse(data).at("marks").at(0).at("text"), hostile);
  EXPECT_EQ(count(renderHtml(page), "</script>"), count(renderHtml({}), "</script>"));
  page.title = "\xff\x1b[2J";
  EXPECT_EQ(json::parse(pageJson(page)).at("title"), "\xef\xbf\xbd\x1b[2J");
}

class InABrowser : public testing::Test {
 protected:
  void SetUp() override {
    if (!haveBrowser()) GTEST_SKIP() << "chromium is not installed (scripts/test installs it)";
  }
};

TEST_F(InABrowser, ChartTablesAndPicturesAreDrawn) {
  const std::string dom = openedByBrowser(renderHtml(somePage()));
  EXPECT_EQ(count(dom, "<polyline"), 1u);
  EXPECT_EQ(count(dom, "class=\"mark\""), 3u);
  EXPECT_EQ(count(dom, "<rect class=\"injection\""), 1u);
  EXPECT_EQ(count(dom, "<table id=\"verdicts\""), 1u);
  EXPECT_EQ(count(dom, "<table id=\"events\""), 1u);
  EXPECT_EQ(count(dom, "<td class=\"cell\""), 4u) << "what was not measured is blank";
  EXPECT_EQ(count(dom, "rgba(192, 57, 43, 0.6)"), 1u) << "rank 2, a third of the time above the median";
  EXPECT_EQ(count(dom, "class=\"rank\""), 4u);
  EXPECT_EQ(count(dom, "class=\"wait\""), 2u) << "rank 9 is not in the picture";
  EXPECT_THAT(dom, HasSubstr("<li>rank 0 waits for rank 1: 25.0 % of the time</li>"));
  EXPECT_THAT(dom, HasSubstr("rank 1: replica 0, stage 1, shard 0; others waited for it 35.0 %"));
  EXPECT_THAT(dom, HasSubstr(">replica 1<"));
  EXPECT_THAT(dom, HasSubstr("data parallel 0: ranks 0, 1, 2"));
}

TEST_F(InABrowser, TheSeverityOfAnEventIsToldInWords) {
  const std::string dom = openedByBrowser(renderHtml(somePage()));
  EXPECT_EQ(count(dom, "class=\"severity severity4\" title=\"60 % longer than in health, or more\">4<"), 1u);
  EXPECT_THAT(dom, HasSubstr("Severity 1: below 15 %"));
}

TEST_F(InABrowser, AnEmptyRunMakesAPageToo) {
  EXPECT_THAT(openedByBrowser(renderHtml({})), HasSubstr("<p>Nothing was reported.</p>"));
  Page page;
  page.eventsNote = "they are elsewhere";
  const std::string dom = openedByBrowser(renderHtml(page));
  EXPECT_THAT(dom, HasSubstr("they are elsewhere"));
  EXPECT_EQ(count(dom, "<p>Nothing was reported.</p>"), 0u);
}

TEST_F(InABrowser, ATextIsNeverMoreThanAText) {
  Page page = somePage();
  const std::string attack =
      hostile + "<img src=x onerror=\"document.title='taken'\"><script>document.title='taken'</script>";
  page.title = page.subtitle = page.eventsNote = attack;
  for (Mark& mark : page.marks) mark.kind = mark.text = attack;
  page.spans[0].label = page.series[0].name = page.series[0].color = page.tableRows[0][0] = attack;
  page.heat->columns[0] = page.heat->rows[0] = page.heat->note = page.heat->legend[0] = page.waits->note = attack;
  const std::string html = renderHtml(page);
  EXPECT_EQ(valueInBrowser(html,
                           "return document.images.length + ' ' + document.scripts.length + ' ' + "
                           "document.getElementById('title').textContent.includes('</' + 'script>') + ' ' + "
                           "document.title.startsWith('taken')"),
            "0 3 true false")
      << "the data, the page's script and this one";
}

// What is drawn in text, and how much of it lies over other text.
constexpr const char* overprinted = R"(
  const boxes = [...document.querySelectorAll('#iterations text')].map(text => text.getBoundingClientRect());
  let over = 0;
  for (let i = 0; i < boxes.length; ++i)
    for (let j = 0; j < i; ++j) {
      const a = boxes[i], b = boxes[j];
      const x = Math.min(a.right, b.right) - Math.max(a.left, b.left), y = Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top);
      if (x > 1 && y > 3) ++over;
    }
  return boxes.length > 40 ? over : 'too little text: ' + boxes.length;)";

TEST_F(InABrowser, LabelsThatCrowdDoNotOverprint) {
  for (const int width : {700, 1280})
    EXPECT_EQ(valueInBrowser(renderHtml(crowdedPage()), overprinted, width), "0") << width << " pixels wide";
}

TEST_F(InABrowser, WordsHaveTheirUsualSizeHoweverManyRanks) {
  // The smallest text as it appears, shrunk pictures included; and whether the page itself must be scrolled sideways.
  constexpr const char* smallest = R"(
    let least = Infinity;
    for (const made of document.querySelectorAll('#heat th, #heat td.cell, #waits text, #iterations text, #events td')) {
      const drawing = made.ownerSVGElement, shrunk = drawing ? drawing.getScreenCTM().a : 1;
      least = Math.min(least, parseFloat(getComputedStyle(made).fontSize) * shrunk);
    }
    const page = document.documentElement;
    return (least >= 12) + ' ' + (page.scrollWidth <= page.clientWidth) + ' ' + document.querySelectorAll('#heat tbody tr').length;)";
  for (const int width : {700, 1280})
    EXPECT_EQ(valueInBrowser(renderHtml(crowdedPage()), smallest, width), "true true 64") << width << " pixels wide";
}

TEST_F(InABrowser, RanksDoNotLieOverEachOther) {
  Page row = crowdedPage();  // no layout is known
  for (int rank = 0; rank < 64; ++rank) row.waits->ranks[static_cast<size_t>(rank)] = {rank, 0, rank, 0};
  constexpr const char* nearest = R"(
    const at = [...document.querySelectorAll('#waits .rank')].map(rank => rank.getBoundingClientRect());
    let least = Infinity;
    for (let i = 0; i < at.length; ++i)
      for (let j = 0; j < i; ++j) least = Math.min(least, Math.hypot(at[i].left - at[j].left, at[i].top - at[j].top));
    return at.length + ' ' + (least > 40);)";
  for (const Page& page : {crowdedPage(), row}) EXPECT_EQ(valueInBrowser(renderHtml(page), nearest), "64 true");
}

}  // namespace
}  // namespace falcon::report_page
