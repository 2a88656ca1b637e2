// Buffers that another process cannot read (memory of a device, say): an error that names the address and the remedy,
// never wrong data.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cerrno>

#include "harness/api_rank.h"
#include "harness/forbid_call.h"

namespace falcon::test {
namespace {

/// What the operations do whose bytes the other rank reads. Which go that way is a matter of their size, so that some
/// may succeed: then their result must be right.
constexpr std::size_t count = 300'000;
using Buffer = std::vector<std::int32_t>;
struct Case {
  const char* name;
  ncclResult_t (*call)(const Buffer& in, Buffer& out, ncclComm_t comm);
  std::size_t results;
  std::int32_t (*expected)(int rank, std::size_t index);
};
const std::array cases = {
    Case{"AllReduce",
         [](const Buffer& in, Buffer& out, ncclComm_t comm) {
           return ncclAllReduce(in.data(), out.data(), count, ncclInt32, ncclSum, comm, hostStream);
         },
         count, [](int, std::size_t) { return 3; }},
    Case{"AllGather",
         [](const Buffer& in, Buffer& out, ncclComm_t comm) {
           return ncclAllGather(in.data(), out.data(), count, ncclInt32, comm, hostStream);
         },
         2 * count, [](int, std::size_t index) { return index < count ? 1 : 2; }},
    Case{"Broadcast",
         [](const Buffer& in, Buffer& out, ncclComm_t comm) {
           return ncclBroadcast(in.data(), out.data(), count, ncclInt32, 0, comm, hostStream);
         },
         count, [](int, std::size_t) { return 1; }},
};

std::string outcomeOf(const Case& kind, ncclComm_t comm, int rank, bool& failed) {
  Buffer in(count, rank + 1), out(kind.results, -1);
  const auto done = kind.call(in, out, comm);
  if (done == ncclSuccess) {
    for (std::size_t i = 0; i < out.size(); ++i)
      if (out[i] != kind.expected(rank, i)) return std::string(kind.name) + " is wrong at " + std::to_string(i);
    return "";
  }
  failed = true;
  return done == ncclRemoteError || done == ncclSystemError ? "" : saying(kind.name, done);
}

TEST(Unreadable, MemoryIsAnErrorThatNamesAddressAndRemedy) {
  const auto logs = logsOf(2);
  SharedBoard board;
  enum Slot { failures = 8 };
  ForkedRanks forked(2, [&](int rank) -> std::string {
    logs[rank]->use("WARN");
    std::array<ncclComm_t, cases.size()> comms{};
    for (std::size_t i = 0; i < cases.size(); ++i)
      if (auto wrong = makeCommunicator(board, static_cast<int>(i), rank, 2, comms[i]); !wrong.empty()) return wrong;
    // As the kernel answers for such memory. It could still be read when the communicators were made.
    if (!forbidCrossMemoryAttach(EFAULT)) return "no seccomp filter";
    for (std::size_t i = 0; i < cases.size(); ++i) {
      bool failed = false;
      if (auto wrong = outcomeOf(cases[i], comms[i], rank, failed); !wrong.empty()) return wrong;
      if (failed) board->steps[failures].fetch_add(1);
      ncclCommAbort(comms[i]);
    }
    return "";
  });
  for (int rank = 0; rank < 2; ++rank) {
    const auto& outcome = forked.wait(rank, Seconds(60));
    if (outcome.report == "no seccomp filter") GTEST_SKIP() << outcome.report;
    EXPECT_TRUE(outcome.ended) << "rank " << rank << " hangs";
    EXPECT_EQ(outcome.report, "");
  }
  const std::string log = logs[0]->text() + logs[1]->text();
  EXPECT_GT(board->steps[failures].load(), 0) << "nothing was read from the other's memory";
  EXPECT_THAT(log, testing::HasSubstr("NCCL_P2P_DISABLE=1"));
  EXPECT_THAT(log, testing::ContainsRegex("cannot be read at 0x[0-9a-f]+"));
}

}  // namespace
}  // namespace falcon::test
