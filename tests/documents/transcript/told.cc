#include "told.h"

#include <nlohmann/json.hpp>
#include <regex>
#include <sstream>
#include <utility>

namespace falcon::documents {
namespace {

/// As they are. Empty where a mark is missing.
std::vector<std::string> betweenTheMarks(const std::string& markdown) {
  std::vector<std::string> between;
  bool inside = false;
  std::istringstream lines(markdown);
  for (std::string line; std::getline(lines, line);) {
    if (line == "<!-- end of transcript -->") inside = false;
    if (inside) between.push_back(line);
    if (line.starts_with("<!-- transcript: ")) inside = true;
  }
  return inside ? std::vector<std::string>() : between;
}

}  // namespace

std::vector<Told> toldInTranscript(const std::string& markdown) {
  static const std::regex event(R"(^ +\d+\.\d s  ([a-z-]+) +(.+)$)");
  std::vector<Told> told;
  for (const std::string& line : betweenTheMarks(markdown))
    if (std::smatch parts; std::regex_match(line, parts, event)) told.push_back({parts[1], parts[2]});
  return told;
}

std::vector<std::string> linesOfTranscript(const std::string& markdown) {
  std::vector<std::string> shown;
  for (const std::string& line : betweenTheMarks(markdown)) {
    std::string plain;
    std::istringstream words(line);
    for (std::string word; words >> word;) plain += (plain.empty() ? "" : " ") + word;
    shown.push_back(std::move(plain));
  }
  return shown;
}

std::vector<Told> toldByJob(const std::string& jsonLines) {
  std::vector<Told> told;
  std::istringstream lines(jsonLines);
  for (std::string line; std::getline(lines, line);) {
    const auto event = nlohmann::json::parse(line, nullptr, false);
    if (event.is_object() && event.contains("kind") && event.contains("text"))
      told.push_back({event["kind"], event["text"]});
  }
  return told;
}

}  // namespace falcon::documents
