// What stands on the page of a job: iteration times with events and injections marked, tables, who spent and waited.
#pragma once

#include <optional>
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
/// Ranks by phases.
struct HeatMap {
  std::string note;               ///< what it shows; without rows: why there is nothing
  std::vector<std::string> rows;  ///< names
  std::vector<std::string> columns;
  std::vector<std::vector<std::optional<double>>> shares;  ///< [row][column], 0 to 1; nothing: not measured
  std::vector<std::string> legend;                         ///< what names in the columns mean
};
/// Who waits for whom, over the parts that ranks have in data, pipeline and tensor parallelism.
struct WaitView {
  struct RankAt {
    int rank = -1;
    int data = 0, pipeline = 0, tensor = 0;
  };
  /// `from` spent `share` of the time waiting for `to`.
  struct Arrow {
    int from = -1, to = -1;
    double share = 0;
  };
  std::string note;  ///< as above
  std::vector<RankAt> ranks;
  std::vector<Arrow> arrows;  ///< the largest share first
};
struct Page {
  std::string title;
  std::string subtitle;
  std::vector<Series> series;
  std::vector<Mark> marks;
  std::string eventsNote;  ///< where there are no marks: why; "": nothing was reported
  std::vector<Span> spans;
  std::vector<std::string> tableHead;
  std::vector<std::vector<std::string>> tableRows;
  std::vector<std::string> notes;
  std::optional<HeatMap> heat;
  std::optional<WaitView> waits;
};

/// The values alone, as JSON that may stand in an HTML file: ASCII, without any `<`.
std::string pageJson(const Page& page);

/// The file: nothing in it is loaded from elsewhere, so it can be mailed.
std::string renderHtml(const Page& page);

}  // namespace falcon::report_page
