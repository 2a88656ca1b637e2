// A process that closes its end over UCX and ends at once.
#include "ext_net/forked_ends.h"
#include "ucx/ucx_network.h"

namespace falcon::net::test {
namespace {

constexpr unsigned count = 30;
constexpr int closed = 0;  // place on the board

std::size_t sizeOf(unsigned message) {
  return message == 0 ? 1'000'000 : message * 100;
}

std::string sendAllAndExit(Network& over, const SharedBoard& board) {
  auto connection = connected(over, board);
  if (!connection) return "it does not get to the receiver";
  for (unsigned i = 0; i < count; ++i) {
    Bytes message = patternOf(sizeOf(i), i);
    const auto send = connection->start(message.data(), message.size(), nullptr);
    if (!send || !finish(*send)) return "a send failed";
  }
  connection.reset();
  board.reach(closed, 1);
  std::exit(0);
}

std::string takeAllLater(Network& over, const SharedBoard& board) {
  std::unique_ptr<Listener> listener;
  const auto connection = accepted(over, board, listener);
  if (!connection) return "no sender has come";
  for (unsigned i = 0; i <= count; ++i) {
    Bytes room(1'000'000);
    const auto receive = connection->start(room.data(), room.size(), nullptr);
    const auto got = receive ? finish(*receive) : receive.error();
    if (i == count) return got ? "a message more" : got.error().code() == ErrorCode::remote ? "" : "not remote";
    if (!got) return fmt::format("message {} is lost: {}", i, got.error().message());
    room.resize(*got);
    if (room != patternOf(sizeOf(i), i)) return fmt::format("message {} is another", i);
    if (i == 0 && !board.waitFor(closed, 1)) return "the sender does not close";
    if (i == 0) std::this_thread::sleep_for(Seconds(0.5));
  }
  return "";
}

TEST(UcxExit, LosesNothingThatTheReceiverHasNotTakenYet) {
  SharedBoard board;
  ForkedRanks ranks(2, [&](int rank) {
    setenv("NCCL_SOCKET_IFNAME", "lo", 1);
    UcxNetwork over;
    if (!over.devices()) return std::string("no network");
    return rank == 0 ? takeAllLater(over, board) : sendAllAndExit(over, board);
  });
  EXPECT_TRUE(ranks.allRight(Seconds(100)));
}

}  // namespace
}  // namespace falcon::net::test
