// Whose messages may come over whose connection to a controller of the bus.
#pragma once

#include <map>
#include <set>

#include "bootstrap/bus.h"

namespace falcon::bootstrap {

/// A member speaks for itself. One that was the controller of a part of its own also passes on what its former members
/// still send over it, until each has its own connection and its mark has come around (see bus_node.h). Used by one
/// thread.
class BusSpeakers {
 public:
  /// `member` has its own connection from now on. `isMoving`: the rest of what it has sent comes over another, with the
  /// mark behind it. `brings`: whose messages it may pass on; of those who have settled here already it may not.
  void admit(ProcessId member, bool isMoving, const std::set<ProcessId>& brings) {
    if (isMoving)
      moving_.insert(member);
    else
      settle(member);
    std::set<ProcessId>& passed = passes_[member];
    for (const ProcessId id : brings)
      if (!passes_.contains(id) || moving_.contains(id)) passed.insert(id);
  }
  /// All that `member` sends comes over its own connection from now on.
  void settle(ProcessId member) {
    moving_.erase(member);
    for (auto& [other, passed] : passes_) passed.erase(member);
  }
  void forget(ProcessId member) {
    settle(member);
    passes_.erase(member);
  }

  bool mayCome(ProcessId sender, ProcessId over) const {
    const auto passed = passes_.find(over);
    return sender == over || (passed != passes_.end() && passed->second.contains(sender));
  }
  /// Everybody who speaks here, over whatever connection.
  std::set<ProcessId> all() const {
    std::set<ProcessId> ids;
    for (const auto& [member, passed] : passes_) {
      ids.insert(member);
      ids.insert(passed.begin(), passed.end());
    }
    return ids;
  }

 private:
  std::map<ProcessId, std::set<ProcessId>> passes_;  // by member
  std::set<ProcessId> moving_;
};

}  // namespace falcon::bootstrap
