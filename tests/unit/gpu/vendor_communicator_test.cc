#include "gpu/vendor_communicator.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "harness/fakes.h"

namespace falcon::gpu {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

/// The network of a communicator of two ranks, seen from rank 0: the other one always answers alike.
class TwinNetwork final : public bootstrap::CommunicatorNetwork {
 public:
  CommunicatorId id() const override { return 77; }
  const transport::Secret& secret() const override { return secret_; }
  Rank rank() const override { return 0; }
  int size() const override { return 2; }
  Result<std::vector<std::string>> allGather(std::string_view mine, Nanoseconds) override {
    return std::vector<std::string>(2, std::string(mine));
  }
  Result<std::shared_ptr<CommunicatorNetwork>> split(int, int, Nanoseconds) override {
    return Error::internal("not asked for");
  }
  Result<std::shared_ptr<CommunicatorNetwork>> shrink(std::span<const Rank>, Nanoseconds,
                                                      const std::function<std::optional<Error>()>&) override {
    return Error::internal("not asked for");
  }
  void abort(std::string_view) override {}
  std::optional<Error> failure() const override { return std::nullopt; }
  void onFailure(std::function<void(const Error&)>) override {}

 private:
  transport::Secret secret_{};
};

/// A host communicator that only counts what reaches it.
class IdleHost final : public collectives::HostCommunicator {
 public:
  struct Log {
    int aborts = 0, finalizes = 0, revokes = 0;
  };
  explicit IdleHost(Log& log) : log_(log) {}
  EngineKind kind() const override { return EngineKind::host; }
  CommunicatorId id() const override { return network_.id(); }
  Rank rank() const override { return 0; }
  int size() const override { return 2; }
  int device() const override { return 0; }
  Result<std::unique_ptr<Engine>> split(int color, int) override {
    if (color < 0) return std::unique_ptr<Engine>();
    return std::unique_ptr<Engine>(new IdleHost(log_));
  }
  Result<std::unique_ptr<Engine>> shrink(std::span<const Rank>, bool) override {
    return std::unique_ptr<Engine>(new IdleHost(log_));
  }
  Status revoke() override {
    ++log_.revokes;
    return {};
  }
  Status finalize() override {
    ++log_.finalizes;
    return {};
  }
  void abort() override { ++log_.aborts; }
  Status asyncError() const override { return {}; }
  std::uint64_t nextCollective() const override { return 0; }
  const std::vector<collectives::MemberInfo>& members() const override { return members_; }
  bootstrap::CommunicatorNetwork& network() override { return network_; }
  const std::shared_ptr<transport::Ports>& ports() override { throw std::logic_error("no ports"); }
  collectives::OneSided& oneSided() override { throw std::logic_error("no one-sided messages"); }
  std::vector<Rank> ringOrder() const override { return {0, 1}; }
  Status proposeRing(std::uint64_t, std::vector<Rank>) override { return {}; }
  void decideRing(std::uint64_t, bool) override {}

 private:
  Log& log_;
  TwinNetwork network_;
  std::vector<collectives::MemberInfo> members_;
};

class FakeDriver final : public CudaDriver {
 public:
  int deviceCount() const override { return 1; }
  MemoryKind memoryOf(const void* pointer) const override {
    const auto found = kinds.find(pointer);
    return found == kinds.end() ? MemoryKind::pageable : found->second;
  }
  void* currentContext() const override { return nullptr; }
  void makeCurrent(void*) const override {}
  bool useDevice(int) const override { return true; }
  std::map<const void*, MemoryKind> kinds;
};

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
    auto made = VendorCommunicator::create(library_, driver_, std::make_unique<IdleHost>(host_), config_, 1s);
    EXPECT_TRUE(made);
    return std::move(*made);
  }

  harness::FakeVendor fake_{FALCON_FAKE_VENDOR};
  std::shared_ptr<const VendorLibrary> library_;
  std::shared_ptr<FakeDriver> driver_ = std::make_shared<FakeDriver>();
  IdleHost::Log host_;
  VendorConfig config_;
};

const void* const in = reinterpret_cast<const void*>(0x1000);
void* const out = reinterpret_cast<void*>(0x2000);
void* const stream = reinterpret_cast<void*>(0x5);

TEST_F(VendorCommunicatorTest, IsMadeWithAnIdThatTravelledAndEndsOnce) {
  config_.values.commName = "x";
  config_.name = "gradients";
  config_.values.blocking = 0;
  auto communicator = make();
  EXPECT_EQ(communicator->device(), 3);
  EXPECT_EQ(communicator->id(), 77u);
  communicator.reset();
  EXPECT_THAT(
      fake_.takeLog(),
      ElementsAre("GetUniqueId", "CommInitRankConfig size=2 rank=0 id=vv blocking=1 name=gradients", "CommDestroy"));
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
  ASSERT_TRUE(runVendorGroup({&submission, 1}));
  EXPECT_THAT(fake_.takeLog(), ElementsAre(GetParam().line));
  EXPECT_EQ(communicator->nextCollective(), isPointToPoint(GetParam().call.operation) ? 0u : 1u);
}

TEST_P(EveryOperation, TellsTheVendorsErrors) {
  auto communicator = make();
  const Submission submission{communicator.get(), GetParam().call, stream};
  for (int code = 1; code <= 7; ++code) {
    fake_.fail(code);
    const Status done = runVendorGroup({&submission, 1});
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
    const Status done = runVendorGroup({&submission, 1});
    ASSERT_FALSE(done);
    EXPECT_EQ(done.error().code(), ErrorCode::invalidUsage);
    EXPECT_THAT(done.error().message(), HasSubstr("which is version"));
    EXPECT_FALSE(simulateVendorGroup({&submission, 1}));
  }
  EXPECT_EQ(communicator->registerBuffer(out, 1).error().code(), ErrorCode::invalidUsage);
  EXPECT_THAT(fake_.takeLog(), IsEmpty());
}

TEST_F(VendorCommunicatorTest, ASimulatedGroupRunsNothing) {
  auto communicator = make();
  fake_.takeLog();
  const Submission submission{
      communicator.get(), {Operation::allReduce, DataType::f32, ReduceOp::sum, in, out, 1, -1}, stream};
  const auto time = simulateVendorGroup({&submission, 1});
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
  ASSERT_TRUE(runVendorGroup(submissions));
  EXPECT_THAT(fake_.takeLog(),
              ElementsAre("GroupStart", "Send 0x1000 1 0 peer=1 0x5", "Recv 0x2000 1 0 peer=1 0x5", "GroupEnd"));
}

TEST_F(VendorCommunicatorTest, AFailedGroupIsStillClosed) {
  auto communicator = make();
  fake_.takeLog();
  // Aborted: the submission fails inside the group, on our side of the border.
  communicator->abort();
  const Submission one{communicator.get(), {Operation::allReduce, DataType::i8, ReduceOp::sum, in, out, 1, -1}, stream};
  const Submission submissions[] = {one, one};
  EXPECT_FALSE(runVendorGroup(submissions));
  EXPECT_THAT(fake_.takeLog(), ElementsAre("CommAbort", "GroupStart", "GroupEnd"));
}

TEST_F(VendorCommunicatorTest, AbortReachesBothEnginesAndFreesOnce) {
  auto communicator = make();
  fake_.takeLog();
  communicator->abort();
  communicator->abort();
  EXPECT_FALSE(communicator->asyncError());
  communicator.reset();
  EXPECT_THAT(fake_.takeLog(), ElementsAre("CommAbort"));
  EXPECT_EQ(host_.aborts, 2);
}

TEST_F(VendorCommunicatorTest, FinalizeReachesBothEngines) {
  auto communicator = make();
  fake_.takeLog();
  EXPECT_TRUE(communicator->finalize());
  EXPECT_THAT(fake_.takeLog(), ElementsAre("CommFinalize"));
  EXPECT_EQ(host_.finalizes, 1);
}

TEST_F(VendorCommunicatorTest, ShrinksAndRevokesBothEnginesAlike) {
  auto communicator = make();
  fake_.takeLog();
  const Rank excluded[] = {1};
  EXPECT_TRUE(communicator->shrink(excluded, false));
  auto child = communicator->shrink(excluded, true);
  ASSERT_TRUE(child);
  EXPECT_EQ((*child)->kind(), EngineKind::vendor);
  EXPECT_TRUE(communicator->revoke());
  EXPECT_EQ(host_.revokes, 1);
  EXPECT_THAT(fake_.takeLog(), ElementsAre("CommShrink first=1 count=1 flags=0", "CommDestroy",
                                           "CommShrink first=1 count=1 flags=1", "CommRevoke 0"));
}

TEST_F(VendorCommunicatorTest, SplitsBothEnginesAlike) {
  auto communicator = make();
  fake_.takeLog();
  auto child = communicator->split(1, 5);
  ASSERT_TRUE(child);
  ASSERT_TRUE(*child);
  EXPECT_EQ((*child)->kind(), EngineKind::vendor);
  auto none = communicator->split(-1, 0);
  ASSERT_TRUE(none);
  EXPECT_FALSE(*none);
  EXPECT_THAT(fake_.takeLog(), ElementsAre("CommSplit color=1 key=5", "CommSplit color=-1 key=0"));
}

TEST_F(VendorCommunicatorTest, TellsAsynchronousErrors) {
  auto communicator = make();
  EXPECT_TRUE(communicator->asyncError());
  fake_.setAsyncError(6);
  const Status state = communicator->asyncError();
  ASSERT_FALSE(state);
  EXPECT_EQ(state.error().code(), ErrorCode::remote);
}

TEST_F(VendorCommunicatorTest, OnlyOrdinaryMemoryWithoutAStreamIsTheHostEngines) {
  auto communicator = make();
  const Call call{Operation::allReduce, DataType::f32, ReduceOp::sum, in, out, 1, -1};
  EXPECT_TRUE(communicator->isForHost(call, nullptr));
  EXPECT_FALSE(communicator->isForHost(call, stream));
  for (const auto kind : {MemoryKind::pinned, MemoryKind::device, MemoryKind::managed}) {
    driver_->kinds = {{in, kind}, {out, kind}};
    EXPECT_FALSE(communicator->isForHost(call, nullptr));
  }
}

TEST_F(VendorCommunicatorTest, AllRanksOfARootedCallLookAtABufferThatAllHave) {
  auto communicator = make();
  driver_->kinds = {{out, MemoryKind::device}, {in, MemoryKind::device}};
  // Root and others, and whatever the insignificant buffer is.
  for (const void* other : {static_cast<const void*>(nullptr), in, static_cast<const void*>("pageable")}) {
    EXPECT_FALSE(
        communicator->isForHost({Operation::broadcast, DataType::f32, ReduceOp::sum, other, out, 1, 0}, nullptr));
    EXPECT_FALSE(communicator->isForHost(
        {Operation::reduce, DataType::f32, ReduceOp::sum, in, const_cast<void*>(other), 1, 0}, nullptr));
  }
}

TEST_F(VendorCommunicatorTest, WithoutADriverEverythingIsTheVendors) {
  auto made = VendorCommunicator::create(library_, nullptr, std::make_unique<IdleHost>(host_), config_, 1s);
  ASSERT_TRUE(made);
  EXPECT_FALSE((*made)->isForHost({Operation::allReduce, DataType::f32, ReduceOp::sum, in, out, 1, -1}, nullptr));
}

}  // namespace
}  // namespace falcon::gpu
