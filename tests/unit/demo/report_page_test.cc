// The report page as text, and as a real browser sees it.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "report/html_report.h"

namespace falcon::report_page {
namespace {

Page somePage() {
  Page page;
  page.title = "A <job> & its \"trouble\"";
  page.series = {{"with Falcon", "#2471a3", {}}};
  for (int i = 0; i < 100; ++i) page.series[0].points.push_back({i * 0.5, i > 50 && i < 80 ? 1000.0 : 500.0});
  page.marks = {{26, "onset", "slower", 4}, {30, "verdict", "rank 3"}, {32, "mitigation-applied", "split"}};
  page.spans = {{25, 40, "rank 3"}};
  page.tableHead = {"truth", "verdict"};
  page.tableRows = {{"rank 3", "rank 3"}};
  return page;
}

size_t count(const std::string& text, const std::string& part) {
  size_t found = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++found;
  return found;
}

TEST(ReportPage, StandsAlone) {
  const std::string html = renderHtml(somePage());
  for (const char* outside : {"http://", "https://", "src=", "href=", "<script", "@import", "url("})
    EXPECT_EQ(count(html, outside), 0u) << outside;
  EXPECT_EQ(count(html, "A &lt;job&gt; &amp; its &quot;trouble&quot;"), 2u);
  EXPECT_EQ(count(html, "<job>"), 0u);
}

TEST(ReportPage, ShowsHowSevereAnOnsetIs) {
  EXPECT_EQ(count(renderHtml(somePage()), "<td>onset</td><td>4</td><td>slower</td>"), 1u);
  EXPECT_EQ(count(renderHtml(somePage()), "<td>verdict</td><td></td><td>rank 3</td>"), 1u);
}

TEST(ReportPage, AnEmptyRunMakesAPageToo) {
  EXPECT_NE(renderHtml({}).find("Nothing was reported."), std::string::npos);
}

TEST(ReportPage, ARealBrowserShowsChartMarksAndTable) {
  if (std::system("command -v chromium >/dev/null 2>&1") != 0)
    GTEST_SKIP() << "chromium is not installed (scripts/test installs it)";
  const auto folder = std::filesystem::temp_directory_path() / ("falcon-page-" + std::to_string(getpid()));
  std::filesystem::create_directories(folder);
  std::ofstream(folder / "page.html") << renderHtml(somePage());
  const std::string command = "HOME=" + folder.string() +
                              " timeout 60 chromium --headless --no-sandbox --disable-gpu --dump-dom file://" +
                              (folder / "page.html").string() + " 2>/dev/null";
  std::string dom;
  FILE* pipe = popen(command.c_str(), "r");
  ASSERT_NE(pipe, nullptr);
  char buffer[4096];
  for (size_t got; (got = fread(buffer, 1, sizeof buffer, pipe)) > 0;) dom.append(buffer, got);
  EXPECT_EQ(pclose(pipe), 0);
  std::filesystem::remove_all(folder);
  // What the browser's own parser made of it.
  EXPECT_EQ(count(dom, "<polyline"), 1u);
  EXPECT_EQ(count(dom, "class=\"mark\""), 3u);
  EXPECT_EQ(count(dom, "<rect class=\"injection\""), 1u);
  EXPECT_EQ(count(dom, "<table id=\"verdicts\""), 1u);
  EXPECT_EQ(count(dom, "<table id=\"events\""), 1u);
}

}  // namespace
}  // namespace falcon::report_page
