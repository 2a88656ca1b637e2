// What a job's events say about now: which fail-slows are active, and what was done.
#pragma once

#include <map>
#include <set>
#include <string>
#include <utility>

namespace falcon::metrics {

class EventFacts {
 public:
  /// Lines in the order they were written; what is not an event is passed over.
  void add(const std::string& eventLine);

  int active(const std::string& culpritKind) const;
  bool minor() const { return minor_; }  ///< a minor slowness is active
  const std::map<std::pair<std::string, std::string>, int>& mitigations() const { return mitigations_; }

 private:
  std::set<std::pair<std::string, std::string>> active_;  ///< kind and culprit
  bool minor_ = false;
  std::map<std::pair<std::string, std::string>, int> mitigations_;  ///< by action and result
};

}  // namespace falcon::metrics
