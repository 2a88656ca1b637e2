// The rules of the Chrome trace format, as strictly as Perfetto's importer takes them.
#pragma once

#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

namespace falcon::tests {

/// What breaks a rule, one line each; empty where all is right.
inline std::vector<std::string> brokenRules(const nlohmann::json& trace) {
  using nlohmann::json;
  std::vector<std::string> broken;
  const auto require = [&](bool holds, const std::string& what, const json& event) {
    if (!holds) broken.push_back(what + ": " + event.dump());
  };
  if (!trace.is_object() || !trace.contains("traceEvents") || !trace["traceEvents"].is_array())
    return {"no list of events"};
  using Track = std::pair<int, int>;
  std::set<Track> named;
  std::set<int> processes;
  std::map<Track, std::vector<double>> open;  // ends of the slices that enclose
  std::map<Track, std::vector<std::pair<double, double>>> slices;
  std::map<int, json> begun, ended;
  double before = 0;
  bool metadata = true;
  for (const json& event : trace["traceEvents"]) {
    require(event.is_object(), "an event is an object", event);
    for (const char* key : {"ph", "name"})
      require(event.contains(key) && event[key].is_string() && !event[key].get<std::string>().empty(), key, event);
    for (const char* key : {"pid", "tid"}) require(event.contains(key) && event[key].is_number_integer(), key, event);
    require(event.contains("ts") && event["ts"].is_number() && event["ts"].get<double>() >= 0, "ts", event);
    if (!broken.empty()) return broken;
    const std::string phase = event["ph"];
    const Track track{event["pid"].get<int>(), event["tid"].get<int>()};
    const double ts = event["ts"];
    if (phase == "M") {
      require(metadata, "names come first", event);
      const std::string name = event["name"];
      if (name == "process_name") {
        require(processes.insert(track.first).second, "a process has one name", event);
        require(event["args"]["name"].is_string(), "a name is text", event);
      } else if (name == "thread_name") {
        require(named.insert(track).second, "a thread has one name", event);
        require(event["args"]["name"].is_string(), "a name is text", event);
      } else {
        require(name == "process_sort_index" || name == "thread_sort_index", "metadata that is known", event);
        require(event["args"]["sort_index"].is_number_integer(), "an index is a number", event);
      }
      continue;
    }
    metadata = false;
    require(ts >= before, "events are in the order of their times", event);
    before = ts;
    require(event.contains("cat") && event["cat"].is_string(), "cat", event);
    require(processes.contains(track.first) && named.contains(track), "process and thread have names", event);
    if (phase == "X") {
      require(event.contains("dur") && event["dur"].is_number() && event["dur"].get<double>() >= 0, "dur", event);
      if (!broken.empty()) return broken;
      require(event.contains("args") && event["args"].is_object(), "args", event);
      const double stop = ts + event["dur"].get<double>();
      // Rounding of sums of doubles, far below the nanosecond that is resolved.
      constexpr double rounding = 1e-4;
      auto& enclosing = open[track];
      while (!enclosing.empty() && enclosing.back() <= ts + rounding && enclosing.back() < stop) enclosing.pop_back();
      require(enclosing.empty() || stop <= enclosing.back() + rounding, "slices of a thread nest", event);
      enclosing.push_back(stop);
      slices[track].push_back({ts, stop});
    } else if (phase == "s" || phase == "f") {
      require(event.contains("id") && event["id"].is_number_integer(), "a flow has a number", event);
      if (!broken.empty()) return broken;
      require(phase == "s" || event.value("bp", "") == "e", "an end binds to the slice that encloses it", event);
      require((phase == "s" ? begun : ended).emplace(event["id"].get<int>(), event).second, "a flow is one", event);
    } else {
      require(false, "a phase that is known", event);
    }
  }
  for (const auto& [id, event] : begun) {
    require(ended.contains(id), "a flow ends", event);
    if (ended.contains(id)) require(ended[id]["ts"] >= event["ts"], "a flow goes forward", event);
  }
  for (const auto* flows : {&begun, &ended})
    for (const auto& [id, event] : *flows) {
      const double ts = event["ts"];
      bool inside = false;
      for (const auto& [start, stop] : slices[{event["pid"].get<int>(), event["tid"].get<int>()}])
        inside = inside || (start - 1e-4 <= ts && ts <= stop + 1e-4);
      require(inside && begun.contains(id), "a flow is bound to a slice", event);
    }
  return broken;
}

}  // namespace falcon::tests
