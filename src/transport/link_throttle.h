// Makes a link slow on purpose, for demonstrations where network namespaces are not permitted.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/types.h"

namespace falcon::transport {

/// The rate that the text gives the link, in bytes per second: lines `from to bytes_per_second` (job ranks), '#' starts
/// a comment, the last line for a link wins; nothing where no line names it or the rate is not positive.
std::optional<double> throttledRate(std::string_view text, const Link& link);

/// What went over the link so far, throttled or not. Its text form is "<bytes> <held>".
struct LinkCounts {
  std::uint64_t bytes = 0;
  std::uint64_t held = 0;  ///< times that the limit made something wait
};
/// Where a job with that throttle file writes the counts of a link.
std::string linkCountsFile(const std::string& throttleFile, const Link& link);

/// The token bucket of one link. Thread-safe: all connections over the link share it.
class LinkThrottle {
 public:
  /// Writes the counts to linkCountsFile(file, link) while bytes are asked for, at most every 100 ms.
  LinkThrottle(std::string file, Link link, const Clock& clock);

  /// Of `wanted` bytes, how many may be sent now. Looks at the file every 100 ms.
  std::size_t take(std::size_t wanted);
  /// Bytes that were taken but not sent.
  void giveBack(std::size_t bytes);

 private:
  void readFileAgain(Nanoseconds now);
  void writeCounts() const;

  const std::string file_;
  const Link link_;
  const Clock& clock_;
  std::mutex mutex_;
  LinkCounts counts_;
  std::optional<double> rate_;
  double tokens_ = 0;
  Nanoseconds refilled_{0};
  std::optional<Nanoseconds> looked_;
  timespec modified_{};
  off_t length_ = -1;
  ino_t inode_ = 0;
};

/// The bucket of that link in this process; null unless NCCL_FALCON_INJECT_LINK_FILE is set.
std::shared_ptr<LinkThrottle> linkThrottle(const Link& link);

}  // namespace falcon::transport
