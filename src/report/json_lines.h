// Events as JSON lines, schema version 1: one object a line, written with one write call, appended.
#pragma once

#include <string>

#include "base/event.h"
#include "base/owned.h"
#include "base/result.h"

namespace falcon::report {

inline constexpr int eventSchemaVersion = 1;

/// One event as a JSON object without line end. Keys: v, kind, time_s, wall_time_s, iteration, and, where they apply,
/// before_ms, after_ms, confidence, duration_s, culprit {kind, rank | from, to, both_ways}, text.
std::string toJson(const Event& event);

/// Appends to a file. A write that fails is noticed once; the job goes on.
class JsonLinesSink final : public EventSink {
 public:
  static Result<JsonLinesSink> open(const std::string& path);
  void add(const Event& event) override;

 private:
  explicit JsonLinesSink(FileDescriptor file, std::string path) : file_(std::move(file)), path_(std::move(path)) {}
  FileDescriptor file_;
  std::string path_;
  bool failed_ = false;
};

}  // namespace falcon::report
