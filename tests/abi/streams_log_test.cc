// What Falcon sees of operations on host streams: when they ran, not when they were queued.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <optional>

#include "abi/streams.h"
#include "instrument/call_log_view.h"

namespace falcon::abi {
namespace {

using namespace std::chrono_literals;

std::optional<instrument::CallLogView> logIn(const std::string& folder) {
  for (const auto& file : std::filesystem::directory_iterator(folder)) {
    if (file.path().extension() != ".calls") continue;
    auto view = instrument::readCallLog(file.path(), 100);
    if (view) return std::move(*view);
  }
  return std::nullopt;
}

TEST(StreamLog, HasOperationsAsTheyRan) {
  const NamedJob job;
  inFreshChild({{"NCCL_FALCON", "1"}, {"NCCL_FALCON_JOB", job.name}}, [&] {
    const Duo duo;
    const std::array<Stream, 2> streams;
    std::array<int, 2> values = {1, 2};
    const auto queueTwo = [&](int rank) {
      for (const auto operation : {ncclMax, ncclMin})
        NCCL_OK(ncclAllReduce(&values[rank], &values[rank], 1, ncclInt, operation, duo[rank], streams[rank]));
    };
    queueTwo(0);
    const auto hasBegun = [&] {
      const auto log = logIn(job.folder());
      return log && !log->inFlight.empty();
    };
    for (int i = 0; i < 6000 && !hasBegun(); ++i) std::this_thread::sleep_for(10ms);
    ASSERT_TRUE(hasBegun());
    const Nanoseconds partnerCame = SystemClock::instance().now();
    queueTwo(1);
    for (const Stream& stream : streams) NCCL_OK(synchronized(stream));
    const auto log = logIn(job.folder());
    ASSERT_TRUE(log);
    ASSERT_EQ(log->calls, 4u);
    for (const CallRecord& record : log->latest) {
      const bool first = record.reduction == ReduceOp::max;
      EXPECT_EQ(record.sequence, first ? 0u : 1u);
      EXPECT_GE(record.leave, partnerCame);
      EXPECT_GE(record.leave, record.enter);
      // The one that was queued behind has not begun before.
      if (!first) {
        EXPECT_GE(record.enter, partnerCame);
      }
    }
    // Of the first two, one has waited for the other.
    const auto waited = std::count_if(log->latest.begin(), log->latest.end(),
                                      [&](const CallRecord& record) { return record.enter < partnerCame; });
    EXPECT_EQ(waited, 1);
  });
}

TEST(LabelLog, HasWhatTheApplicationSaysAboutItsCalls) {
  const NamedJob job;
  inFreshChild({{"NCCL_FALCON", "1"}, {"NCCL_FALCON_JOB", job.name}}, [&] {
    const Duo duo;
    const Stream stream;
    std::array<int, 2> values = {1, 2};
    for (const int round : {0, 1, 2}) {
      const auto call = [&](int rank, cudaStream_t on) {
        // Gone before the call on the stream runs.
        ncclConfigExt_t group{nullptr, {NCCL_FALCON_VENDOR_ID, NCCL_FALCON_OPTION_GROUP}, {.i = 7}};
        ncclConfigExt_t phase{
            round > 1 ? &group : nullptr, {NCCL_FALCON_VENDOR_ID, NCCL_FALCON_OPTION_PHASE}, {.i = 10 * round}};
        ncclConfigExt_t iteration{
            round > 1 ? &phase : nullptr, {NCCL_FALCON_VENDOR_ID, NCCL_FALCON_OPTION_ITERATION}, {.i = round}};
        ncclCollConfig_t config = NCCL_COLLCONFIG_INITIALIZER;
        if (round < 2) config.userProfilerTag = 100 + round;
        if (round > 0) config.ext = &iteration;
        NCCL_OK(ncclAllReduceConfig(&values[rank], &values[rank], 1, ncclInt, ncclSum, duo[rank], on, &config));
      };
      call(0, stream);
      call(1, nullptr);
      // One without anything to say.
      NCCL_OK(ncclAllReduce(&values[0], &values[0], 1, ncclInt, ncclSum, duo[0], stream));
      NCCL_OK(ncclAllReduce(&values[1], &values[1], 1, ncclInt, ncclSum, duo[1], nullptr));
    }
    NCCL_OK(synchronized(stream));
    const auto log = logIn(job.folder());
    ASSERT_TRUE(log);
    std::array<std::vector<LabelledCall>, 2> labelled;
    for (const LabelledCall& call : log->labelled) labelled.at(call.rank).push_back(call);
    for (const int rank : {0, 1}) {
      ASSERT_EQ(labelled[rank].size(), 3u);
      const CommunicatorId id = log->latest.at(0).communicator;
      const CallLabels expected[] = {{100, CallLabels::none}, {101, 1}, {0, 2, 20, 7}};
      for (const size_t round : {0, 1, 2})
        EXPECT_EQ(labelled[rank][round],
                  (LabelledCall{id, 2 * round, Operation::allReduce, -1, rank, expected[round]}));
    }
  });
}

}  // namespace
}  // namespace falcon::abi
