// What Falcon adds to a call of the application: the log's entry and end, with the two looks at the clock that they
// need, and the note for the trap. Aim: 100 ns.
#include <benchmark/benchmark.h>
#include <unistd.h>

#include <cstdio>

#include "base/counter_clock.h"
#include "control/trap.h"
#include "instrument/call_log.h"

namespace falcon {
namespace {

/// As src/api/dispatch.cc does it for a call outside of groups.
class Hook {
 public:
  explicit Hook(const std::string& path)
      : log_(std::move(*instrument::CallLog::create(path, {"job", "host", 0, 8}, 1 << 15))), trap_(clock_) {
    instrument::CommunicatorEntry communicator{7, 0, 0, false, "dp", {}};
    communicator.members.resize(8);
    place_ = log_->add(communicator);
  }
  void call(std::uint64_t number) {
    CallRecord record;
    record.communicator = 7;
    record.sequence = number;
    record.count = 1000;
    record.rank = 0;
    record.enter = counter_.now();
    Event event(counts_);
    event.enter();
    trap_.passEvent(event);
    CallRecorder& recorder = *log_;
    const Flight flight = recorder.enter(record, place_);
    control::Trap::noteEntry(slot_);
    benchmark::ClobberMemory();
    record.leave = counter_.now();
    recorder.leave(flight, record);
    counts_.leave();
    control::Trap::noteCall(slot_, record.leave);
    trap_.leaveCall();
  }

 private:
  class Event final : public CallEvent {
   public:
    explicit Event(CallCounts& counts) : counts_(counts) {}
    void enter() noexcept override { counts_.enter(call_); }
    void takeBack() noexcept override { counts_.takeBack(call_); }

   private:
    CallCounts& counts_;
    const Call call_;
  };

  SystemClock clock_;
  CounterClock<> counter_;
  CallCounts counts_{8};
  std::unique_ptr<instrument::CallLog> log_;
  control::Trap trap_;
  control::Trap::ThreadSlot& slot_ = trap_.mySlot();
  int place_ = noPlace;
};

void hookOfACall(benchmark::State& state) {
  const std::string path = "/dev/shm/falcon-bench-" + std::to_string(getpid());
  Hook hook(path);
  std::uint64_t number = 0;
  for (auto _ : state) hook.call(number++);
  std::remove(path.c_str());
}
BENCHMARK(hookOfACall);

void twoLooksAtTheClock(benchmark::State& state) {
  SystemClock clock;
  for (auto _ : state) {
    benchmark::DoNotOptimize(clock.now());
    benchmark::DoNotOptimize(clock.now());
  }
}
BENCHMARK(twoLooksAtTheClock);

void twoLooksAtTheCounter(benchmark::State& state) {
  CounterClock<> clock;
  for (auto _ : state) {
    benchmark::DoNotOptimize(clock.now());
    benchmark::DoNotOptimize(clock.now());
  }
}
BENCHMARK(twoLooksAtTheCounter);

}  // namespace
}  // namespace falcon
