#include "collectives/one_sided.h"

namespace falcon::collectives {

std::uint64_t OneSided::openWindow(const void* address, std::size_t bytes) {
  way_->openWindow(++windows_, address, bytes);
  return windows_;
}

std::uint64_t& OneSided::taken(Rank peer, int kind) {
  if (taken_.empty()) taken_.resize(static_cast<std::size_t>(member_->shape.size) * transport::signalKinds);
  return taken_[static_cast<std::size_t>(peer) * transport::signalKinds + static_cast<std::size_t>(kind)];
}

Status OneSided::send(const char* function, const OneSidedMessage& message) {
  if (const Status healthy = member_->health(); !healthy) return healthy;
  return way_->send(function, message);
}

Status OneSided::await(const char* function, std::span<const AwaitedSignals> signals) {
  if (const Status healthy = member_->health(); !healthy) return healthy;
  for (const AwaitedSignals& awaited : signals) {
    const std::uint64_t needed = taken(awaited.peer, awaited.kind) + awaited.count;
    const auto haveCome = [&] { return way_->signalsFrom(awaited.peer, awaited.kind) >= needed; };
    if (const Status come = way_->until(function, awaited.peer, haveCome); !come) return come;
    // One after another, so that several entries for one peer add up. Where a later one fails, the communicator is
    // broken, and nobody asks any more.
    taken(awaited.peer, awaited.kind) = needed;
  }
  return {};
}

}  // namespace falcon::collectives
