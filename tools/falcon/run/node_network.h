// The network of `--nodes`: a namespace per node, a bridge in one more, and for every rank an interface with an address
// of its own.
#pragma once

#include <vector>

#include "base/owned.h"
#include "base/result.h"
#include "run/placement.h"

namespace falcon::tools {

/// Namespaces without names, held by descriptors: when this object's process and the ranks are gone, however they
/// ended, the kernel removes namespaces, interfaces and bridge.
class NodeNetwork {
 public:
  /// Needs root and iproute2's `ip`. For a process with one thread.
  static Result<NodeNetwork> make(const std::vector<RankPlacement>& places);

  int descriptorOf(int node) const { return nodes_[static_cast<size_t>(node)].get(); }

 private:
  FileDescriptor bridge_;
  std::vector<FileDescriptor> nodes_;
};

}  // namespace falcon::tools
