// Follows a file of events that another process writes and rotates.
#pragma once

#include <string>
#include <vector>

#include "base/owned.h"

namespace falcon::events {

/// Used by one thread. A file that is not there yet may come later.
class EventTail {
 public:
  /// @param path       events.jsonl; the older ones (events.jsonl.1 ...) are read too
  /// @param fromStart  false: only lines that are written from now on
  /// @param job        only its lines, and those that name no job: several may write to one file; empty: all
  EventTail(std::string path, bool fromStart, std::string job = {});

  /// The whole lines that came since the last time, oldest first. What was rotated away unread is missed.
  std::vector<std::string> take();

 private:
  void read(const FileDescriptor& file);

  const std::string path_, job_;
  FileDescriptor file_;  ///< the one being read
  std::string rest_;     ///< of it: the beginning of a line whose end is not written
  std::vector<std::string> lines_;
};

/// All lines of the job's in the file and in the older ones that are kept, oldest first.
std::vector<std::string> allEvents(const std::string& path, const std::string& job = {});

}  // namespace falcon::events
