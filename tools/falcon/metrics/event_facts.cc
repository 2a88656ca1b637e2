#include "metrics/event_facts.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "json_text.h"

namespace falcon::metrics {
namespace {

std::string textAt(const nlohmann::json& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_string() ? found->get<std::string>() : "";
}

}  // namespace

void EventFacts::add(const std::string& eventLine) {
  const auto event = nlohmann::json::parse(eventLine, nullptr, false);
  if (!event.is_object()) return;
  const std::string kind = textAt(event, "kind");
  // A job of the same name may have written into the same file before.
  if (kind == "job-started" || kind == "job-ended") active_.clear();
  if (kind == "minor") minor_ = true;
  if (kind == "minor-over" || kind == "job-started" || kind == "job-ended") minor_ = false;
  const auto culprit = event.find("culprit");
  if (culprit != event.end() && culprit->is_object()) {
    const std::pair<std::string, std::string> who{textAt(*culprit, "kind"), tools::jsonText(*culprit)};
    if (kind == "verdict") active_.insert(who);
    if (kind == "relief") active_.erase(who);
  }
  if (kind.starts_with("mitigation-") && event.contains("action"))
    ++mitigations_[{textAt(event, "action"), kind.substr(std::string("mitigation-").size())}];
}

int EventFacts::active(const std::string& culpritKind) const {
  return static_cast<int>(
      std::count_if(active_.begin(), active_.end(), [&](const auto& each) { return each.first == culpritKind; }));
}

}  // namespace falcon::metrics
