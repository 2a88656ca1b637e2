#include "instrument/call_hash.h"

#include <gtest/gtest.h>

#include "unit/instrument/call_script.h"

namespace falcon::instrument {
namespace {

TEST(CallHash, TellsAllPartsOfACallApartAndIgnoresTimes) {
  CallRecord record = call('A');
  const std::uint64_t hash = callHash(record);
  record.enter = 5s, record.leave = 6s, record.sequence = 9;
  EXPECT_EQ(callHash(record), hash);
  const auto differs = [&](auto change) {
    CallRecord other = record;
    change(other);
    return callHash(other) != hash;
  };
  EXPECT_TRUE(differs([](CallRecord& r) { r.communicator = 2; }));
  EXPECT_TRUE(differs([](CallRecord& r) { r.operation = Operation::broadcast; }));
  EXPECT_TRUE(differs([](CallRecord& r) { r.type = DataType::f16; }));
  EXPECT_TRUE(differs([](CallRecord& r) { r.reduction = ReduceOp::max; }));
  EXPECT_TRUE(differs([](CallRecord& r) { r.peer = 0; }));
  EXPECT_TRUE(differs([](CallRecord& r) { r.count += 1; }));
}

}  // namespace
}  // namespace falcon::instrument
