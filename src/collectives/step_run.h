// One collective over connections that runs by itself: the short way of calls outside of groups.
#pragma once

#include <span>
#include <vector>

#include "collectives/call_plan.h"
#include "collectives/step_runner.h"

namespace falcon::collectives {

/// Used by one thread. Kept from call to call: it allocates nothing once it has run a call as long before.
class StepRun {
 public:
  /// Forgets what was there before. `way` has an algorithm. `ring` outlives the run, ports too.
  void begin(transport::Ports& ports, const MemberShape& shape, const Call& call, const Way& way,
             std::span<const Rank> ring);

  /// After it has finished: the same call on other buffers. False: it is too long for that, begin() anew.
  bool again(const Call& call);

  /// Does what can be done now, but only so much that others get their turn; true if anything moved. Errors: remote,
  /// invalidUsage where the ranks' calls differ.
  Result<bool> progress();
  bool finished() const { return running_ == 0; }
  /// What would change it after nothing moved. Until the next call.
  std::span<const transport::WaitSource> waitSources();

 private:
  struct Channel {
    StepRunner runner;
    bool finished = false;
  };

  /// For as many as such a call can wait for: its first wait may come in a much later call, which shall allocate
  /// nothing.
  void makeRoomForWaits();

  std::vector<Channel> channels_;  // the first used_ of them are this call's
  std::size_t used_ = 0;
  std::size_t running_ = 0;
  std::vector<transport::WaitSource> sources_;
};

}  // namespace falcon::collectives
