// The controller's events, in a file.
#pragma once

#include <optional>
#include <string>
#include <utility>

#include "base/event.h"
#include "base/log.h"
#include "base/parameters.h"
#include "report/json_lines.h"

namespace falcon::control {

/// Writes events where the parameters say; where that fails, into nothing. The file is opened for the first event: at a
/// job's end several ranks are the controller for a moment, and have nothing to say.
class EventFile final : public EventSink {
 public:
  /// @param job  whose events they are
  EventFile(std::string path, report::JsonLinesSink::Place place, std::string job)
      : path_(std::move(path)), job_(std::move(job)), place_(place) {}
  void add(const Event& event) override {
    log::info("Falcon: {}: {}", nameOf(event.kind), event.text);
    if (!opened_) open();
    if (sink_) sink_->add(event);
  }
  const std::string& path() const { return path_; }
  const std::string& job() const { return job_; }

 private:
  void open() {
    opened_ = true;
    auto opened = report::JsonLinesSink::open(path_, parameters::eventsSize.value(), place_, job_);
    if (opened)
      sink_.emplace(std::move(*opened));
    else
      log::notice("{}; events are not kept", opened.error().message());
  }

  const std::string path_, job_;
  const report::JsonLinesSink::Place place_;
  bool opened_ = false;
  std::optional<report::JsonLinesSink> sink_;
};

}  // namespace falcon::control
