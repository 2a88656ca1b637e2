// Boards for tests, and sleeping at them.
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <vector>

#include "transport/node_board.h"

namespace falcon::transport {

/// One for each rank, all in this process. `stranger`: a rank that does not take part in heavy fences.
inline std::vector<std::unique_ptr<NodeBoard>> boards(int ranks, Rank stranger = -1) {
  const std::shared_ptr<Doorbell> doorbell(&processDoorbell(), [](Doorbell*) {});
  std::vector<std::unique_ptr<NodeBoard>> made;
  for (Rank rank = 0; rank < ranks; ++rank) {
    auto board = rank == 0 ? NodeBoard::create(ranks) : NodeBoard::open(made[0]->name(), ranks);
    EXPECT_TRUE(board) << board.error().message();
    (*board)->enter(rank, std::vector(ranks, doorbell), rank != stranger);
    made.push_back(std::move(*board));
  }
  return made;
}

/// Sleeps as the engine does: announces, looks again, sleeps. The limit is far beyond what the test may take: a wake-up
/// that is lost shows.
template <class Condition>
void sleepUntil(NodeBoard& board, const NodeBoard::Awaited& awaited, Condition holds) {
  while (!holds()) {
    const auto ticket = processDoorbell().ticket();
    board.announceSleep(awaited);
    if (!holds()) processDoorbell().wait(ticket, std::chrono::minutes(10));
    board.withdrawSleep();
  }
}

}  // namespace falcon::transport
