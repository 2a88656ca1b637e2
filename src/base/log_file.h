// The file that NCCL_DEBUG_FILE names, which the vendor's NCCL takes for its own where it is in the process.
#pragma once

#include <optional>
#include <string>

#include "base/owned.h"

namespace falcon::log {

/// The vendor's NCCL is in this process, or will be before it logs: it empties the file that NCCL_DEBUG_FILE names, and
/// knows of nobody else there. So our lines are in FILE.falcon from now on, those that are written already too. From
/// any thread, any number of times.
void makeRoomForVendor();

/// What NCCL_DEBUG_FILE names: %h is the host, %p the process, %% a percent sign.
std::string expanded(const std::string& pattern, const std::string& host);
/// Where our lines go while the vendor's go to `path`. A device or a pipe keeps what several write: `path` itself.
std::string besideVendors(const std::string& path);

/// Drops what is in the file, if there is one.
void emptyFile(const std::string& path);
/// To append to; made where there is none. Empty where it cannot be opened.
FileDescriptor appendedFile(const std::string& path);
/// What was begun at `from` goes on at `to`; others may be writing to it. Nothing: `file` is there now. Else what to
/// append to instead, which has the lines so far; empty where it cannot be opened.
std::optional<FileDescriptor> movedFile(int file, const std::string& from, const std::string& to);

}  // namespace falcon::log
