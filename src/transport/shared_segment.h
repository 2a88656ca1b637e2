// Memory that other processes of the node can map by name, and that vanishes with its users.
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "base/owned.h"
#include "base/result.h"

namespace falcon::transport {

/// An anonymous file in memory; its name leads through /proc of the process that made it. So a crash leaves nothing
/// behind, and the size of /dev/shm (64 MiB in many containers) does not matter. Movable; unmaps when it goes.
class SharedSegment {
 public:
  /// Room for the largest NCCL_BUFFSIZE; more is refused.
  static constexpr std::size_t largestBytes = std::size_t{1} << 31;

  SharedSegment() = default;
  SharedSegment(SharedSegment&& other) noexcept { *this = std::move(other); }
  SharedSegment& operator=(SharedSegment&& other) noexcept;
  ~SharedSegment();

  /// Zeroed memory of the node, allocated now: a full machine is an error here and not a SIGBUS later.
  static Result<SharedSegment> create(std::size_t bytes);
  /// Maps the segment of that name. Fails where its maker has another pid namespace or user, is gone, or has dropped
  /// the name, and when it is shorter than `bytes`.
  static Result<SharedSegment> open(const std::string& name, std::size_t bytes);
  /// Memory of this process only, under no name: where create() is not permitted.
  static Result<SharedSegment> createPrivate(std::size_t bytes);

  std::span<std::byte> memory() const { return memory_; }
  /// Empty for a private segment and after dropName().
  const std::string& name() const { return name_; }
  /// From now on nobody can open it any more; who has mapped it keeps it.
  void dropName();

 private:
  Status map(std::size_t bytes, int flags);

  FileDescriptor file_;
  std::span<std::byte> memory_;
  std::string name_;
};

}  // namespace falcon::transport
