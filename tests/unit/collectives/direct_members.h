// Ranks of one process around a board.
#pragma once

#include <memory>
#include <stdexcept>
#include <vector>

#include "collectives/direct_member.h"

namespace falcon::test {

/// Whether ranks read each other's memory.
enum class Access { memory, none };

using DirectMembers = std::vector<std::unique_ptr<collectives::DirectMember>>;

inline transport::PeerMemory ownMemory() {
  const auto memory = transport::PeerMemory::attach(transport::ownMemoryOffer(true));
  if (!memory) throw std::runtime_error(memory.error().message());
  return *memory;
}

inline DirectMembers directMembers(int ranks, Access access, bool coresSuffice = true) {
  using transport::NodeBoard;
  const std::shared_ptr<transport::Doorbell> doorbell(&transport::processDoorbell(), [](transport::Doorbell*) {});
  DirectMembers members;
  std::string name;
  for (Rank rank = 0; rank < ranks; ++rank) {
    auto board = rank == 0 ? NodeBoard::create(ranks) : NodeBoard::open(name, ranks);
    if (!board) throw std::runtime_error(board.error().message());
    name = (*board)->name();
    (*board)->enter(rank, std::vector(ranks, doorbell), coresSuffice);
    std::vector<transport::PeerMemory> memories;
    if (access != Access::none) memories.assign(ranks, ownMemory());
    members.push_back(
        std::make_unique<collectives::DirectMember>(std::move(*board), std::move(memories), ranks, coresSuffice));
  }
  return members;
}

}  // namespace falcon::test
