// One thing made slow on purpose.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "base/owned.h"
#include "base/result.h"
#include "inject/claim.h"
#include "inject/outcome.h"
#include "inject/processor_use.h"
#include "inject/shared_counter.h"
#include "machine/description.h"
#include "machine/guardian.h"

namespace falcon::tools {

/// In force from its making until relieve() or destruction; undone also if this process is killed.
/// Used by one thread. Make it before other threads are started: it forks.
class Injection {
 public:
  /// Updates what can be read now, and leaves alone what cannot.
  using Reader = std::function<void(Outcome&)>;

  /// @param guardian  undoes it
  /// @param claim     on the victim; given up once it is undone
  Injection(Outcome outcome, Guardian guardian, FileDescriptor claim, Reader read);
  Injection(const Injection&) = delete;

  /// Reads the counters, which are gone when the job has ended: call it now and then.
  /// @return whether it is effective so far
  bool observe();
  /// Whether its guardian was killed: it may be stuck half-way, and nobody undoes it should this process be killed too.
  bool isUnguarded() const { return guardian_.isGone(); }
  /// Undoes it. @return what it did; the same again when called again.
  Outcome relieve();

 private:
  Outcome outcome_;
  const Reader read_;
  FileDescriptor claim_;
  Guardian guardian_;
  bool relieved_ = false;
};

/// Reads the rank's processor use into coresDuring, and what a guardian counts into `field`.
Injection::Reader readUseAnd(std::uint64_t Outcome::*field, ProcessorUse use, const SharedCounter& count);

/// How strongly to slow a rank; exactly one of the two is set (> 0).
struct RankSlowdown {
  double quota = 0;   ///< cores the rank may use
  double factor = 0;  ///< quota = the rank's present use / factor
};

/// Lowers the rank's cgroup quota, or stops and continues the process in turns where it has no cgroup.
/// First measures the rank's processor use from outside, for about 3 s; afterwards tells whether it fell.
Result<std::unique_ptr<Injection>> slowRank(const JobDescription& job, Rank rank, RankSlowdown slowdown);

inline constexpr double leastBitsPerSecond = 8000;  ///< tc counts in bytes a second
inline constexpr double mostBitsPerSecond = 1e12;

/// How strongly to slow a link; exactly one of the two is set.
struct LinkSlowdown {
  double bitsPerSecond = 0;  ///< the limit, leastBitsPerSecond to mostBitsPerSecond
  /// Iterations shall take this many times as long (> 1): the link is watched for 5 s; what it carried in them must
  /// then take (slowdown - 1) times 5 s. Holds where the transfer is waited for, as gradients are.
  double iterations = 0;
  /// For a job without nodes: not the kernel but the socket transport holds back, as this file tells it
  /// (NCCL_FALCON_INJECT_LINK_FILE of the job). Empty: the kernel.
  std::string throttleFile;
};

/// Limits what `link.from` sends to `link.to` (and the other way where bothWays), on the sender's interface, for this
/// pair of addresses only. The job must run with --nodes, the ranks on different nodes.
Result<std::unique_ptr<Injection>> slowLink(const JobDescription& job, Link link, bool bothWays,
                                            const LinkSlowdown& slowdown);

/// Stops the rank's process (SIGSTOP): it hangs. Refused where it is stopped already.
Result<std::unique_ptr<Injection>> hangRank(const JobDescription& job, Rank rank);

/// A process that streams through memory, inside the rank's cgroup where it has one: something that nobody has a name
/// for.
Result<std::unique_ptr<Injection>> memoryHog(const JobDescription& job, Rank rank);

}  // namespace falcon::tools
