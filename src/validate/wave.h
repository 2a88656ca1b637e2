// A wave of link tests as one process runs it: all its ends together, on one thread.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "validate/link_test.h"

namespace falcon::validate {

/// A communicator that this process has, as one of its ranks. Processes with several ranks list each.
struct LocalCommunicator {
  CommunicatorId id = 0;
  Rank rank = -1;                     ///< of the communicator
  transport::Ports* ports = nullptr;  ///< of that rank
};

/// This process's ends of a wave. Used by one thread; does not block. The ports and the clock outlive it.
class WaveRun {
 public:
  /// Links that touch none of `communicators` are not this process's; one that cannot be started is `failed` at once.
  WaveRun(const Wave& wave, std::span<const LocalCommunicator> communicators, const LinkTestSettings& settings,
          const Clock& clock);

  /// True if anything was done.
  bool progress();
  bool finished() const;
  void giveUp(LinkStatus reason);
  std::vector<transport::WaitSource> waitSources() const;
  /// Of the links received here, once finished.
  std::vector<LinkMeasurement> measurements() const;
  bool empty() const { return ends_.empty() && failed_.empty(); }

 private:
  std::vector<std::unique_ptr<LinkTestEnd>> ends_;
  std::vector<LinkMeasurement> failed_;
};

/// Runs the wave to its end, at most `limit`; blocks its thread, sleeping while nothing moves.
/// @param stop  asked at least every 20 ms; true ends the wave with what has been measured
/// @return      one measurement for each link received here; empty when this process only sends or takes no part
std::vector<LinkMeasurement> runWave(const Wave& wave, std::span<const LocalCommunicator> communicators,
                                     const LinkTestSettings& settings, transport::Waiter& waiter, const Clock& clock,
                                     Nanoseconds limit, const std::function<bool()>& stop = {});

}  // namespace falcon::validate
