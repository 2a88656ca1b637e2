#include "gpu/vendor_communicator.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "harness/fakes.h"

namespace falcon::gpu {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class VendorCommunicatorTest : public testing::Test {
 protected:
  void SetUp() override {
    auto loaded = loadVendorLibrary(FALCON_FAKE_VENDOR);
    ASSERT_TRUE(loaded);
    library_ = *loaded;
    fake_.takeLog();
  }
  void TearDown() override {
    fake_.fail(0);
    fake_.setAsyncError(0);
  }

  std::unique_ptr<VendorCommunicator> make() {
    ncclUniqueId id;
    std::memset(id.internal, 'v', sizeof id.internal);
    auto made = VendorCommunicator::create(library_, std::span(&id, 1), {2, 0, 77}, config_);
    EXPECT_TRUE(made);
    return std::move(*made);
  }

  harness::FakeVendor fake_{FALCON_FAKE_VENDOR};
  std::shared_ptr<const VendorLibrary> library_;
  VendorConfig config_;
};

const void* const in = reinterpret_cast<const void*>(0x1000);
void* const out = reinterpret_cast<void*>(0x2000);
void* const stream = reinterpret_cast<void*>(0x5);

TEST_F(VendorCommunicatorTest, IsMadeWithTheIdThatItIsGivenAndEndsOnce) {
  config_.values.commName = "x";
  config_.name = "gradients";
  config_.values.blocking = 0;
  auto communicator = make();
  EXPECT_EQ(communicator->device(), 3);
  EXPECT_EQ(communicator->id(), 77u);
  communicator.reset();
  EXPECT_THAT(fake_.takeLog(),
              ElementsAre("CommInitRankConfig size=2 rank=0 id=vv blocking=1 name=gradients", "CommDestroy"));
}

struct Forwarded {
  Call call;
  const char* line;
};

class EveryOperation : public VendorCommunicatorTest, public testing::WithParamInterface<Forwarded> {};

TEST_P(EveryOperation, ArrivesWithTheSameArguments) {
  auto communicator = make();
  fake_.takeLog();
  const Submission submission{communicator.get(), GetParam().call, stream};
  ASSERT_TRUE(communicator->run({&submission, 1}));
  EXPECT_THAT(fake_.takeLog(), ElementsAre(GetParam().line));
  EXPECT_EQ(communicator->nextCollective(), isPointToPoint(GetParam().call.operation) ? 0u : 1u);
}

TEST_P(EveryOperation, TellsTheVendorsErrors) {
  auto communicator = make();
  const Submission submission{communicator.get(), GetParam().call, stream};
  for (int code = 1; code <= 7; ++code) {
    fake_.fail(code);
    const Status done = communicator->run({&submission, 1});
    ASSERT_FALSE(done);
    EXPECT_EQ(static_cast<int>(done.error().code()), code);
    EXPECT_THAT(done.error().message(), HasSubstr("fake detail"));
  }
  EXPECT_EQ(communicator->nextCollective(), 0u);
}

INSTANTIATE_TEST_SUITE_P(
    Operations, EveryOperation,
    testing::Values(Forwarded{{Operation::allReduce, DataType::bf16, ReduceOp::max, in, out, 11, -1},
                              "AllReduce 0x1000 0x2000 11 9 2 0x5"},
                    Forwarded{{Operation::broadcast, DataType::f32, ReduceOp::sum, in, out, 12, 1},
                              "Broadcast 0x1000 0x2000 12 7 root=1 0x5"},
                    Forwarded{{Operation::reduce, DataType::f64, ReduceOp::avg, in, out, 13, 1},
                              "Reduce 0x1000 0x2000 13 8 4 root=1 0x5"},
                    Forwarded{{Operation::allGather, DataType::i8, ReduceOp::sum, in, out, 14, -1},
                              "AllGather 0x1000 0x2000 14 0 0x5"},
                    Forwarded{{Operation::reduceScatter, DataType::f16, ReduceOp::min, in, out, 15, -1},
                              "ReduceScatter 0x1000 0x2000 15 6 3 0x5"},
                    Forwarded{{Operation::send, DataType::u64, ReduceOp::sum, in, nullptr, 16, 1},
                              "Send 0x1000 16 5 peer=1 0x5"},
                    Forwarded{{Operation::allToAll, DataType::f32, ReduceOp::sum, in, out, 18, -1},
                              "AlltoAll 0x1000 0x2000 18 7 0x5"},
                    Forwarded{{Operation::gather, DataType::f32, ReduceOp::sum, in, out, 19, 1},
                              "Gather 0x1000 0x2000 19 7 root=1 0x5"},
                    Forwarded{{Operation::scatter, DataType::f32, ReduceOp::sum, in, out, 20, 1},
                              "Scatter 0x1000 0x2000 20 7 root=1 0x5"},
                    Forwarded{{Operation::receive, DataType::i32, ReduceOp::sum, nullptr, out, 17, 1},
                              "Recv 0x2000 17 2 peer=1 0x5"}));

TEST_F(VendorCommunicatorTest, WhatAnOlderLibraryLacksIsRefused) {
  auto older = std::make_shared<VendorLibrary>(*library_);
  older->functions.allToAll = nullptr;
  older->functions.gather = nullptr;
  older->functions.scatter = nullptr;
  older->functions.commRegister = nullptr;
  older->functions.groupSimulateEnd = nullptr;
  library_ = older;
  auto communicator = make();
  fake_.takeLog();
  for (const auto operation : {Operation::allToAll, Operation::gather, Operation::scatter}) {
    const Submission submission{communicator.get(), {operation, DataType::f32, ReduceOp::sum, in, out, 1, 0}, stream};
    const Status done = communicator->run({&submission, 1});
    ASSERT_FALSE(done);
    EXPECT_EQ(done.error().code(), ErrorCode::invalidUsage);
    EXPECT_THAT(done.error().message(), HasSubstr("which is version"));
    EXPECT_FALSE(communicator->estimate({&submission, 1}));
  }
  EXPECT_EQ(communicator->registerBuffer(out, 1).error().code(), ErrorCode::invalidUsage);
  EXPECT_THAT(fake_.takeLog(), IsEmpty());
}

TEST_F(VendorCommunicatorTest, ASimulatedGroupRunsNothing) {
  auto communicator = make();
  fake_.takeLog();
  const Submission submission{
      communicator.get(), {Operation::allReduce, DataType::f32, ReduceOp::sum, in, out, 1, -1}, stream};
  const auto time = communicator->estimate({&submission, 1});
  ASSERT_TRUE(time);
  EXPECT_EQ(*time, 42);
  EXPECT_THAT(fake_.takeLog(), ElementsAre("GroupStart", "AllReduce 0x1000 0x2000 1 7 0 0x5", "GroupSimulateEnd"));
  EXPECT_EQ(communicator->nextCollective(), 0u);
}

TEST_F(VendorCommunicatorTest, AGroupIsOneGroupOverAllCommunicators) {
  auto first = make(), second = make();
  fake_.takeLog();
  const Submission submissions[] = {
      {first.get(), {Operation::send, DataType::i8, ReduceOp::sum, in, nullptr, 1, 1}, stream},
      {second.get(), {Operation::receive, DataType::i8, ReduceOp::sum, nullptr, out, 1, 1}, stream}};
  ASSERT_TRUE(first->run(submissions));
  EXPECT_THAT(fake_.takeLog(),
              ElementsAre("GroupStart", "Send 0x1000 1 0 peer=1 0x5", "Recv 0x2000 1 0 peer=1 0x5", "GroupEnd"));
}

TEST_F(VendorCommunicatorTest, AFailedGroupIsStillClosed) {
  auto communicator = make();
  fake_.takeLog();
  // Aborted: the submission fails inside the group, on our side of the border.
  EXPECT_TRUE(communicator->abort());
  const Submission one{communicator.get(), {Operation::allReduce, DataType::i8, ReduceOp::sum, in, out, 1, -1}, stream};
  const Submission submissions[] = {one, one};
  EXPECT_FALSE(communicator->run(submissions));
  EXPECT_THAT(fake_.takeLog(), ElementsAre("CommAbort", "GroupStart", "GroupEnd"));
}

TEST_F(VendorCommunicatorTest, IsAbortedOnce) {
  auto communicator = make();
  fake_.takeLog();
  EXPECT_TRUE(communicator->abort());
  EXPECT_TRUE(communicator->abort());
  EXPECT_FALSE(communicator->asyncError());
  communicator.reset();
  EXPECT_THAT(fake_.takeLog(), ElementsAre("CommAbort"));
}

// The vendor has freed it all the same.
TEST_F(VendorCommunicatorTest, TellsThatItsEndFailedAndEndsOnce) {
  for (const bool aborts : {false, true}) {
    auto communicator = make();
    fake_.takeLog();
    fake_.fail(ncclUnhandledCudaError);
    const Status ended = aborts ? communicator->abort() : communicator->end();
    ASSERT_FALSE(ended);
    EXPECT_EQ(ended.error().code(), ErrorCode::unhandledCuda);
    fake_.fail(0);
    communicator.reset();
    EXPECT_THAT(fake_.takeLog(), ElementsAre(aborts ? "CommAbort" : "CommDestroy"));
  }
}

TEST_F(VendorCommunicatorTest, IsFinalizedAndRevokedByTheVendor) {
  auto communicator = make();
  fake_.takeLog();
  EXPECT_TRUE(communicator->finalize());
  EXPECT_TRUE(communicator->revoke());
  EXPECT_THAT(fake_.takeLog(), ElementsAre("CommFinalize", "CommRevoke 0"));
}

TEST_F(VendorCommunicatorTest, IsShrunkByTheVendor) {
  auto communicator = make();
  fake_.takeLog();
  const Rank excluded[] = {1};
  EXPECT_TRUE(communicator->shrink(excluded, false, nullptr, 5));
  auto child = communicator->shrink(excluded, true, nullptr, 6);
  ASSERT_TRUE(child);
  EXPECT_EQ((*child)->id(), 6u);
  EXPECT_EQ((*child)->size(), 1) << "the vendor says so";
  EXPECT_THAT(fake_.takeLog(),
              ElementsAre("CommShrink first=1 count=1 flags=0", "CommDestroy", "CommShrink first=1 count=1 flags=1"));
}

TEST_F(VendorCommunicatorTest, IsSplitByTheVendor) {
  auto communicator = make();
  fake_.takeLog();
  auto child = communicator->split(1, 5, nullptr, 8);
  ASSERT_TRUE(child);
  ASSERT_TRUE(*child);
  EXPECT_EQ((*child)->id(), 8u);
  EXPECT_EQ((*child)->size(), 2);
  auto none = communicator->split(-1, 0, nullptr, 9);
  ASSERT_TRUE(none);
  EXPECT_FALSE(*none);
  EXPECT_THAT(fake_.takeLog(), ElementsAre("CommSplit color=1 key=5", "CommSplit color=-1 key=0"));
}

// Without one the vendor gives it its parent's.
TEST_F(VendorCommunicatorTest, WhatIsMadeOfItHasAConfigurationOfItsOwn) {
  config_.values.maxCTAs = 3;
  auto communicator = make();
  fake_.takeLog();
  VendorConfig own;
  own.values.maxCTAs = 7;
  own.values.blocking = 0;
  own.values.commName = "x";
  own.name = "child";
  const Rank excluded[] = {1};
  ncclUniqueId id;
  std::memset(id.internal, 'g', sizeof id.internal);
  EXPECT_TRUE(communicator->split(0, 0, &own, 1));
  EXPECT_TRUE(communicator->shrink(excluded, false, &own, 2));
  EXPECT_TRUE(communicator->grow(3, &id, -1, &own, 3));
  EXPECT_TRUE(communicator->grow(3, nullptr, -1, nullptr, 4));
  EXPECT_THAT(fake_.takeLog(),
              ElementsAre("CommSplit color=0 key=0 blocking=1 maxCTAs=7 name=child", "CommDestroy",
                          "CommShrink first=1 count=1 flags=0 blocking=1 maxCTAs=7 name=child", "CommDestroy",
                          "CommGrow member size=3 rank=-1 id=g blocking=1 maxCTAs=7 name=child", "CommDestroy",
                          "CommGrow member size=3 rank=-1 id=-", "CommDestroy"));
}

TEST_F(VendorCommunicatorTest, TellsAsynchronousErrors) {
  auto communicator = make();
  EXPECT_TRUE(communicator->asyncError());
  fake_.setAsyncError(6);
  const Status state = communicator->asyncError();
  ASSERT_FALSE(state);
  EXPECT_EQ(state.error().code(), ErrorCode::remote);
}

}  // namespace
}  // namespace falcon::gpu
