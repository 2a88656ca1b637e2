// Where Falcon's ranks meet when NCCL_COMM_ID names the vendor's rendezvous: then no unique id travels from rank to
// rank, so what all know must come from their environment.
#pragma once

#include <map>
#include <mutex>
#include <optional>
#include <utility>

#include "base/types.h"
#include "bootstrap/unique_id.h"

namespace falcon::preload {

/// One a process. Thread-safe.
class FixedRendezvous {
 public:
  /// Of the next communicator of this size that this process makes by NCCL_COMM_ID, as this rank: every one has a
  /// rendezvous of its own, so that ranks of different ones do not meet. Nothing where NCCL_FALCON_COMM_ID does not
  /// name the place, which is said once.
  std::optional<bootstrap::UniqueId> next(Rank rank, int size);
  /// In a forked child.
  void forgetAll();

 private:
  std::mutex mutex_;
  std::map<std::pair<Rank, int>, std::uint64_t> made_;
};

}  // namespace falcon::preload
