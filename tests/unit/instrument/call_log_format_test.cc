// The offsets that docs/call-log.md promises to readers in other languages.
#include "instrument/call_log_format.h"

#include <gtest/gtest.h>

#include <cstddef>

namespace falcon::instrument {
namespace {

TEST(CallLogFormat, TheHeaderIsWhereTheDocumentSays) {
  EXPECT_EQ(offsetof(CallLogHeader, version), 8u);
  EXPECT_EQ(offsetof(CallLogHeader, capacity), 20u);
  EXPECT_EQ(offsetof(CallLogHeader, jobRank), 24u);
  EXPECT_EQ(offsetof(CallLogHeader, pid), 32u);
  EXPECT_EQ(offsetof(CallLogHeader, startWallTime), 40u);
  EXPECT_EQ(offsetof(CallLogHeader, startTime), 48u);
  EXPECT_EQ(offsetof(CallLogHeader, job), 56u);
  EXPECT_EQ(offsetof(CallLogHeader, host), 184u);
  EXPECT_EQ(offsetof(CallLogHeader, head), 248u);
  EXPECT_EQ(offsetof(CallLogHeader, state), 256u);
  EXPECT_EQ(offsetof(CallLogHeader, command), 260u);
  EXPECT_EQ(offsetof(CallLogHeader, held), 268u);
  EXPECT_EQ(offsetof(CallLogHeader, iterations), 272u);
  EXPECT_EQ(offsetof(CallLogHeader, iterationNanoseconds), 280u);
  EXPECT_EQ(offsetof(CallLogHeader, failslowActive), 288u);
  EXPECT_EQ(offsetof(CallLogHeader, ended), 292u);
  EXPECT_EQ(offsetof(CallLogHeader, heartbeat), 296u);
  EXPECT_EQ(offsetof(CallLogHeader, flightsMissed), 304u);
  EXPECT_EQ(offsetof(CallLogHeader, sections), 312u);
  EXPECT_EQ(sizeof(CallLogSection), 16u);
}

TEST(CallLogFormat, ACallIsWhereTheDocumentSays) {
  EXPECT_EQ(sizeof(CallRecord), 56u);
  EXPECT_EQ(offsetof(CallRecord, operation), 8u);
  EXPECT_EQ(offsetof(CallRecord, type), 9u);
  EXPECT_EQ(offsetof(CallRecord, reduction), 10u);
  EXPECT_EQ(offsetof(CallRecord, grouped), 11u);
  EXPECT_EQ(offsetof(CallRecord, peer), 12u);
  EXPECT_EQ(offsetof(CallRecord, count), 16u);
  EXPECT_EQ(offsetof(CallRecord, sequence), 24u);
  EXPECT_EQ(offsetof(CallRecord, enter), 32u);
  EXPECT_EQ(offsetof(CallRecord, leave), 40u);
  EXPECT_EQ(offsetof(CallRecord, rank), 48u);
  EXPECT_EQ(offsetof(CallRecord, thread), 52u);
}

TEST(CallLogFormat, ATransferIsWhereTheDocumentSays) {
  const TransferTiming transfer{.communicator = 1,
                                .sequence = 2,
                                .channel = 3,
                                .peer = 4,
                                .sending = true,
                                .bytes = 5,
                                .start = Nanoseconds(6),
                                .stop = Nanoseconds(7),
                                .waiting = Nanoseconds(8),
                                .moving = Nanoseconds(9)};
  const TransferWords words = wordsOf(transfer);
  EXPECT_EQ(words, (TransferWords{1, 2, 3 | 4ull << 32, 1, 5, 6, 7, 8, 9}));
  EXPECT_EQ(wordsOf(transferOf(words)), words);
  EXPECT_EQ(static_cast<std::size_t>(SectionKind::transfers), 4u);
}

TEST(CallLogFormat, LabelsAreWhereTheDocumentSays) {
  const LabelledCall call{1, 2, Operation::reduce, 3, 4, {5, 6, 7, 8}};
  const LabelWords words = wordsOf(call);
  EXPECT_EQ(words, (LabelWords{1, 2, 1 | 3ull << 32, 4, 5, 6, 8 | 9ull << 32}));
  EXPECT_EQ(labelledCallOf(words), call);
  constexpr std::int32_t greatest = std::numeric_limits<std::int32_t>::max();
  const LabelledCall wide{1, 2, Operation::reduce, 3, 4, {5, 6, greatest, greatest}};
  EXPECT_EQ(labelledCallOf(wordsOf(wide)), wide);
  const LabelledCall without{1, 2, Operation::allReduce, -1, 0, {5, CallLabels::none}};
  EXPECT_EQ(wordsOf(without)[6], 0u);
  EXPECT_EQ(labelledCallOf(wordsOf(without)), without);
  EXPECT_EQ(static_cast<std::size_t>(SectionKind::labels), 6u);
}

}  // namespace
}  // namespace falcon::instrument
