// One-sided messages inside a node, among ranks that may read and write each other's memory.
#pragma once

#include "collectives/one_sided_way.h"

namespace falcon::collectives {

/// The sender writes into the peer's window and counts a signal up on the board, where the peer looks.
class DirectOneSided final : public OneSidedWay {
 public:
  /// The member's `direct` has signals.
  DirectOneSided(LocalMember& member, transport::Waiter& waiter) : OneSidedWay(member, waiter) {}

  void openWindow(std::uint64_t number, const void* address, std::size_t bytes) override;
  void closeWindow(std::uint64_t number) override;
  Status send(const char* function, const OneSidedMessage& message) override;
  std::uint64_t signalsFrom(Rank peer, int kind) const override;

 private:
  transport::NodeBoard& board() const { return member_->direct->board(); }
  transport::SignalBoard& signals() const { return *member_->direct->signals(); }
  bool hasLeft(Rank peer) const override { return board().hasLeft(peer); }
  bool hasLeftInOrder(Rank peer) const override { return board().hasLeftInOrder(peer); }
  void announceSleep(Rank peer) override { board().announceSleep(transport::NodeBoard::awaitedMessage(peer)); }
  void withdrawSleep() override { board().withdrawSleep(); }
};

}  // namespace falcon::collectives
