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
  explicit EventFile(std::string path) : path_(std::move(path)) {}
  void add(const Event& event) override {
    log::info("Falcon: {}: {}", nameOf(event.kind), event.text);
    if (!opened_) open();
    if (sink_) sink_->add(event);
  }

 private:
  void open() {
    opened_ = true;
    auto opened = report::JsonLinesSink::open(path_, parameters::eventsSize.value());
    if (opened)
      sink_.emplace(std::move(*opened));
    else
      log::notice("{}; events are not kept", opened.error().message());
  }

  const std::string path_;
  bool opened_ = false;
  std::optional<report::JsonLinesSink> sink_;
};

}  // namespace falcon::control
