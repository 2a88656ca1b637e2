// A device for tests: its clock, streams that are busy, captured, or that hold up who launches.
#pragma once

#include <gtest/gtest.h>

#include <atomic>
#include <map>
#include <set>
#include <thread>

#include "base/clock.h"
#include "gpu/cuda_driver.h"

namespace falcon::test {

/// Moves on by a microsecond whenever it is asked, so that nobody waits for ever.
class Ticking final : public Clock {
 public:
  Nanoseconds now() const override { return time_ += 1us; }
  void sleep(Nanoseconds time) override { time_ += time; }

 private:
  mutable Nanoseconds time_{1s};
};

/// A device whose clock is `ahead` of the host's. Streams are any pointers, of the context that `contextOf` says.
class TimedDevice final : public gpu::StreamEvents {
 public:
  explicit TimedDevice(const Clock& clock) : clock_(clock) {}

  void* record(void* stream, void* event, Kind kind) const override {
    if (stream == heldUp) {
      holdingUp_ = true;
      while (!letGo_) std::this_thread::yield();
    }
    if (captured.contains(stream) || refuses) {
      if (event) free(event);
      return nullptr;
    }
    EXPECT_EQ(kind, Kind::timed);
    if (!event) event = reinterpret_cast<void*>(++made_);
    alive.insert(event);
    streamOf_[event] = stream;
    Nanoseconds reached = clock_.now();
    if (othersShare > 0ns) reached += othersShare - reached % othersShare;
    times_[event] = reached + ahead;
    return event;
  }
  bool isDone(void* event) const override {
    return !busy.contains(streamOf_.at(event)) && clock_.now() + ahead >= times_.at(event);
  }
  void free(void* event) const override { EXPECT_EQ(alive.erase(event), 1u); }
  std::optional<Nanoseconds> between(void* first, void* second) const override {
    if (forgets) return std::nullopt;
    EXPECT_EQ(contextOf(streamOf_.at(first)), contextOf(streamOf_.at(second)));
    return times_.at(second) - times_.at(first);
  }
  void* contextOf(void* stream) const override {
    return reinterpret_cast<void*>(reinterpret_cast<std::uintptr_t>(stream) / 0x1000);
  }
  void* makeStream(void* context) const override {
    return refuses ? nullptr : reinterpret_cast<void*>(reinterpret_cast<std::uintptr_t>(context) * 0x1000 + 0xfff);
  }

  bool isHoldingUp() const { return holdingUp_; }
  void letGo() { letGo_ = true; }

  std::optional<void*> heldUp;  ///< the stream whose launches wait until letGo(): its queue is full
  Nanoseconds ahead{5s};
  Nanoseconds othersShare{0};  ///< another process has the device for so long, and again at once when we are idle
  bool refuses = false, forgets = false;
  std::set<void*> captured, busy;  ///< streams
  mutable std::set<void*> alive;   ///< events

 private:
  const Clock& clock_;
  mutable std::atomic<bool> holdingUp_{false};
  std::atomic<bool> letGo_{false};
  mutable std::map<void*, void*> streamOf_;
  mutable std::map<void*, Nanoseconds> times_;
  mutable std::uintptr_t made_ = 0;
};

class DriverOf final : public gpu::CudaDriver {
 public:
  explicit DriverOf(const gpu::StreamEvents* events) : events_(events) {}
  int deviceCount() const override { return 1; }
  gpu::MemoryKind memoryOf(const void*) const override { return gpu::MemoryKind::device; }
  void* currentContext() const override { return nullptr; }
  void makeCurrent(void*) const override {}
  bool useDevice(int) const override { return true; }
  const gpu::StreamEvents* streamEvents() const override { return events_; }

 private:
  const gpu::StreamEvents* events_;
};

}  // namespace falcon::test
