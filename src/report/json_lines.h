// Events as JSON lines, schema version 1: one object a line, written with one write call, appended.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "base/event.h"
#include "base/owned.h"
#include "base/result.h"

namespace falcon::report {

inline constexpr int eventSchemaVersion = 1;

/// One event as a JSON object without line end. Keys: v, kind, time_s, wall_time_s, iteration, and, where they apply,
/// job, before_ms, after_ms, confidence, duration_s, culprit {kind, rank | from, to, both_ways}, suspects, ranges,
/// observed, action, text. Published as docs/events.schema.json.
std::string toJson(const Event& event, const std::string& job = {});

/// Whether the line, as toJson() makes it, is of that job. Several may write to one file. One that names no job is of
/// any; and so is every line where `job` is empty.
bool isOfJob(std::string_view line, const std::string& job);

/// Older files that are kept beside the one that is written.
inline constexpr int eventFilesKept = 3;
/// Where lines are after `age` rotations, 1 to eventFilesKept: "events.jsonl.1" is the youngest of them.
std::string rotatedName(const std::string& path, int age);

/// Appends to a file, and begins another when it is full; to a pipe as long as somebody reads it. Never waits. What
/// fails (a full disk, a folder that is gone) is noticed once.
class JsonLinesSink final : public EventSink {
 public:
  /// Where a file lies decides whose it may be.
  enum class Place {
    anywhere,   ///< the user chose it: it may be a link, or somebody else's
    ownFolder,  ///< what lies there already may be a stranger's, who could once write to the folder
  };
  /// @param mostBytes  a line that would make the file longer goes into a new one; 0: never
  /// @param job        whose events they are
  static Result<JsonLinesSink> open(const std::string& path, std::int64_t mostBytes = 0, Place place = Place::anywhere,
                                    const std::string& job = {});
  void add(const Event& event) override;

 private:
  JsonLinesSink(std::string path, std::int64_t mostBytes, Place place, std::string job)
      : path_(std::move(path)), job_(std::move(job)), mostBytes_(mostBytes), place_(place) {}
  Status reopen();
  void makeRoomFor(std::size_t bytes);
  void sayMissing(const std::string& why);

  FileDescriptor file_;
  std::string path_, job_;
  std::int64_t mostBytes_;
  Place place_;
  bool failed_ = false;    ///< and it was said
  bool cutShort_ = false;  ///< the file ends in the middle of a line
};

}  // namespace falcon::report
