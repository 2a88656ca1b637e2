// One self-contained HTML file: the iteration times as a chart, events and injections marked, a table below.
#pragma once

#include <string>
#include <vector>

namespace falcon::report_page {

/// One iteration: when it ended (seconds from the run's start) and how long it took.
struct Point {
  double seconds = 0;
  double milliseconds = 0;
};
struct Series {
  std::string name;   ///< "with Falcon"
  std::string color;  ///< CSS
  std::vector<Point> points;
};
struct Mark {
  double seconds = 0;
  std::string kind;  ///< an event's kind: "onset", "verdict" ...
  std::string text;
  int severity = 0;  ///< 1 to 4; 0: does not apply
};
/// A stretch of time that is shaded: what was injected, known only afterwards.
struct Span {
  double start = 0;
  double end = 0;
  std::string label;
};
/// A drawing under a heading; `svg` is taken as it is.
struct Picture {
  std::string title;
  std::string note;
  std::string svg;
};
struct Page {
  std::string title;
  std::string subtitle;
  std::vector<Series> series;
  std::vector<Mark> marks;
  std::vector<Span> spans;
  std::vector<std::string> tableHead;
  std::vector<std::vector<std::string>> tableRows;
  std::vector<std::string> notes;
  std::vector<Picture> pictures;
};

/// No script, no link, no font from elsewhere: the file can be mailed. Text is escaped.
std::string renderHtml(const Page& page);

}  // namespace falcon::report_page
