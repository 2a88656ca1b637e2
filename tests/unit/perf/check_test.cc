// Results of real calls are right; broken ones are counted, element by element.
#include "perf/check.h"

#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "perf/perf_options.h"

namespace falcon::perf {
namespace {

constexpr int ranks = 3, root = 1;
constexpr size_t elements = 96;

/// Rank `rank`'s part in one call; `look` sees its result.
template <class Look>
void call(const CollectiveRow& row, const NamedType& type, const NamedOp& op, int rank, ncclComm_t comm, Look look) {
  const size_t size = elementSizeOf(type.type);
  const Counts counts = countsFor(row.collective, elements * size, size, ranks);
  std::vector<char> send(counts.send * size), receive(counts.receive * size, '\xA5');
  fill(send.data(), counts.send, type.type, rank, 0);
  ASSERT_EQ(
      launch(row.collective, {send.data(), receive.data()}, counts, type.type, op.op, root, rank, ranks, size, comm),
      ncclSuccess)
      << ncclGetLastError(nullptr);
  look(receive, Expectation{row.collective, counts, type.type, op.op, root, rank, ranks});
}

template <class Body>
void onRanks(Body body) {
  ncclComm_t comms[ranks];
  ASSERT_EQ(ncclCommInitAll(comms, ranks, nullptr), ncclSuccess) << ncclGetLastError(nullptr);
  std::vector<std::thread> threads;
  for (int rank = 0; rank < ranks; ++rank) threads.emplace_back([&, rank] { body(rank, comms[rank]); });
  for (std::thread& thread : threads) thread.join();
  for (ncclComm_t comm : comms) ncclCommDestroy(comm);
}

TEST(Check, CountsExactlyTheElementsThatAreBroken) {
  onRanks([](int rank, ncclComm_t comm) {
    for (const CollectiveRow& row : collectiveRows()) {
      for (const NamedType& type : namedTypes()) {
        for (const NamedOp& op : namedOps()) {
          call(row, type, op, rank, comm, [&](std::vector<char>& result, const Expectation& expectation) {
            const auto what = std::string(row.name) + " " + type.name + " " + op.name;
            EXPECT_EQ(countWrong(result.data(), expectation), 0u) << what;
            const bool hasResult =
                (row.collective != Collective::reduce && row.collective != Collective::gather) || rank == root;
            const size_t size = elementSizeOf(type.type);
            // The largest change of an element that leaves it a number: what a lost contribution looks like.
            for (const size_t broken : {size_t{0}, expectation.counts.receive / 2, expectation.counts.receive - 1})
              result[broken * size + size - 1] ^= 0x11;
            EXPECT_EQ(countWrong(result.data(), expectation), hasResult ? 3u : 0u) << what;
          });
        }
      }
    }
  });
}

TEST(Check, AResultThatWasNeverWrittenIsWrongEverywhere) {
  onRanks([](int rank, ncclComm_t comm) {
    call(collectiveRows()[0], {"float", ncclFloat32}, {"sum", ncclSum}, rank, comm,
         [&](std::vector<char>& result, const Expectation& expectation) {
           std::memset(result.data(), 0xA5, result.size());
           EXPECT_EQ(countWrong(result.data(), expectation), elements);
         });
  });
}

TEST(Check, AMissingContributionIsSeen) {
  onRanks([](int rank, ncclComm_t comm) {
    call(collectiveRows()[0], {"double", ncclFloat64}, {"sum", ncclSum}, rank, comm,
         [&](std::vector<char>& result, Expectation expectation) {
           expectation.ranks = ranks + 1;  // one more should have taken part; it would have added 0, 1 or 2
           const size_t wrong = countWrong(result.data(), expectation);
           EXPECT_GT(wrong, elements / 2);
           EXPECT_LT(wrong, elements);
         });
  });
}

}  // namespace
}  // namespace falcon::perf
