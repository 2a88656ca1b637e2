// What a member tells of a profile, and when: a device may be far behind the calls that launched its work.
#include <gtest/gtest.h>

#include "harness/timed_device.h"
#include "unit/control/a_member.h"
#include "unit/control/idle_membership.h"

namespace falcon::control {
namespace {

class Vendors final : public falcon::test::Idle<Membership> {
  EngineKind kind() const override { return EngineKind::vendor; }
};

class TimedWork final : public gpu::LaunchedWork {
 public:
  TimedWork(const gpu::StreamEvents& events, Clock& clock)
      : times_([&events] { return std::make_shared<falcon::test::DriverOf>(&events); }, clock) {}
  void note(void*) noexcept override {}
  bool isDone() override { return true; }
  gpu::DeviceTimes& times() override { return times_; }

 private:
  gpu::DeviceTimes times_;
};

/// A process with a communicator of the vendor's.
struct MemberProfile : falcon::test::AMember {
  MemberProfile() {
    KnownCommunicator known;
    known.membership = &vendors;
    communicators.add(known);
    onGpu.handle(1, SetProfiling{true, 100});
  }
  ~MemberProfile() override { communicators.remove(vendors); }

  void call() {
    CallRecord record;
    record.communicator = vendors.id();
    gpu::TimedLaunch launch;
    record.enter = deviceClock.now();
    work.times().before(launch, stream, vendors.id());
    work.times().behind(launch, deviceClock.now());
    record.leave = deviceClock.now();
    log->write(record);
    onGpu.tick();
  }

  Vendors vendors;
  void* const stream = reinterpret_cast<void*>(0x1001);
  falcon::test::Ticking deviceClock;
  falcon::test::TimedDevice device{deviceClock};
  TimedWork work{device, deviceClock};
  Member onGpu{{bus, clock, *log, trap, transfers, communicators, plans, decisions, benchmark, nullptr, nullptr, &work,
                &stopping, &restarts},
               {}};
};

TEST_F(MemberProfile, IsToldAtOnceWhereTheDeviceIsDone) {
  for (int i = 0; i < 3; ++i) call();
  onGpu.handle(1, SetProfiling{false});
  const auto told = bus.take<CallTimes>();
  ASSERT_EQ(told.size(), 1u);
  EXPECT_EQ(told[0].calls.size(), 3u);
  EXPECT_EQ(bus.take<TransferProfile>().size(), 1u);
}

TEST_F(MemberProfile, WaitsForTheDevice) {
  call();
  device.busy = {stream};
  for (int i = 0; i < 2; ++i) call();
  onGpu.handle(1, SetProfiling{false});
  clock.advance(900ms);
  onGpu.tick();
  EXPECT_TRUE(bus.take<TransferProfile>().empty());
  device.busy.clear();
  onGpu.tick();
  const auto told = bus.take<CallTimes>();
  ASSERT_EQ(told.size(), 1u);
  EXPECT_EQ(told[0].calls.size(), 3u);
  EXPECT_EQ(bus.take<TransferProfile>().size(), 1u);
  onGpu.tick();
  EXPECT_TRUE(bus.take<TransferProfile>().empty()) << "it is told once";
}

// A stream that stands still for good: the controller waits for 2 s at most.
TEST_F(MemberProfile, WaitsForASecondAtMost) {
  device.busy = {stream};
  call();
  onGpu.handle(1, SetProfiling{false});
  clock.advance(1s);
  onGpu.tick();
  EXPECT_EQ(bus.take<TransferProfile>().size(), 1u);
}

// The controller takes what it is told next for an answer to what it has asked last.
TEST_F(MemberProfile, IsToldBeforeTheNextOneBegins) {
  device.busy = {stream};
  call();
  onGpu.handle(1, SetProfiling{false});
  EXPECT_TRUE(bus.take<TransferProfile>().empty());
  onGpu.handle(1, SetProfiling{true, 100});
  EXPECT_EQ(bus.take<TransferProfile>().size(), 1u);
  onGpu.handle(1, SetProfiling{false});
  clock.advance(1s);
  onGpu.tick();
  EXPECT_EQ(bus.take<TransferProfile>().size(), 1u);
}

}  // namespace
}  // namespace falcon::control
