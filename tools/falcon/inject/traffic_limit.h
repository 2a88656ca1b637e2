// One direction of one link, limited by the kernel's traffic control.
#pragma once

#include <string>

#include "inject/outcome.h"
#include "machine/description.h"

namespace falcon::tools {

/// An htb class on the sender's interface, with u32 filters for exactly one pair of addresses. What the filters do not
/// match is not shaped at all (htb's direct queue). A value: owns nothing.
class TrafficLimit {
 public:
  TrafficLimit(RankDescription sender, RankDescription receiver, double bitsPerSecond)
      : sender_(std::move(sender)), receiver_(std::move(receiver)), bitsPerSecond_(bitsPerSecond) {}

  /// An error where the interface has queues that somebody else made: they stay as they are. Ask before apply().
  Status mayBeApplied() const;
  /// Several limits of one interface share its queue.
  Status apply() const;
  /// The rate alone, of one that is applied.
  Status change() const;
  /// Does no harm where mayBeApplied() but it never was.
  void remove() const;
  Result<LinkTraffic> traffic() const;
  /// For the next apply() or change().
  void setRate(double bitsPerSecond) { bitsPerSecond_ = bitsPerSecond; }

 private:
  /// Runs tc in the sender's namespace. @param words  tc's arguments, with blanks between
  Result<std::string> tc(const std::string& words) const;
  std::string classCommand(const char* verb) const;
  /// Numbers of their own for every receiver.
  std::string classId() const;
  int acknowledgementPriority() const { return 2 * receiver_.rank + 1; }
  int dataPriority() const { return 2 * receiver_.rank + 2; }

  RankDescription sender_;
  RankDescription receiver_;
  double bitsPerSecond_;
};

/// The counters of one class in the text of `tc -s class show`; all zero where the class is not there.
LinkTraffic parseClassCounters(const std::string& text, const std::string& classId);

}  // namespace falcon::tools
