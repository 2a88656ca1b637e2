#include "told.h"

#include <nlohmann/json.hpp>
#include <regex>
#include <sstream>

namespace falcon::documents {

std::vector<Told> toldInTranscript(const std::string& markdown) {
  static const std::regex event(R"(^ +\d+\.\d s  ([a-z-]+) +(.+)$)");
  std::vector<Told> told;
  bool inside = false;
  std::istringstream lines(markdown);
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("<!-- transcript: ")) inside = true;
    if (line == "<!-- end of transcript -->") inside = false;
    if (std::smatch parts; inside && std::regex_match(line, parts, event)) told.push_back({parts[1], parts[2]});
  }
  return inside ? std::vector<Told>() : told;
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
