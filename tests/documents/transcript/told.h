// What was said, from a transcript or from events.jsonl.
#pragma once

#include <string>
#include <vector>

namespace falcon::documents {

/// One event, as far as a reader sees it.
struct Told {
  std::string kind;
  std::string text;
};

/// The events between the marks in README.md, in their order: lines such as "  36.5 s  onset   iterations went ...".
/// Empty where the marks, or events between them, are missing.
std::vector<Told> toldInTranscript(const std::string& markdown);

/// The lines between the marks in README.md, with one blank where there are several, and none at either end.
/// Empty where the marks are missing.
std::vector<std::string> linesOfTranscript(const std::string& markdown);

/// The events of one job: lines of events.jsonl. A line that is no event is passed over.
std::vector<Told> toldByJob(const std::string& jsonLines);

}  // namespace falcon::documents
