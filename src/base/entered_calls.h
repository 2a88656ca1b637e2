// A call from its entry to its end, as it is counted for those who hold the job, and as the call log shows it.
#pragma once

#include <cstddef>
#include <span>
#include <utility>

#include "base/call.h"
#include "base/call_counts.h"
#include "base/recorders.h"

namespace falcon {

/// The calls of one event, counted as entered until leave(); without that they have failed, and do not count.
/// An `Entered` has the `call` and the `counts()` of its communicator. Used by the thread that calls.
template <class Entered>
class EnteredCalls final : public CallEvent {
 public:
  explicit EnteredCalls(std::span<const Entered> calls) : calls_(calls) {}
  ~EnteredCalls() { EnteredCalls::takeBack(); }
  EnteredCalls(const EnteredCalls&) = delete;
  EnteredCalls& operator=(const EnteredCalls&) = delete;

  /// The next of them, where each has to be looked at before the one after it counts.
  void enterNext() noexcept {
    const Entered& next = calls_[entered_++];
    next.counts().enter(next.call);
  }
  void enter() noexcept override {
    while (entered_ < calls_.size()) enterNext();
  }
  void takeBack() noexcept override {
    while (entered_ > 0) {
      const Entered& last = calls_[--entered_];
      last.counts().takeBack(last.call);
    }
  }
  void leave() noexcept {
    for (const Entered& each : calls_) each.counts().leave();
    forget();
  }
  /// In a forked child, to which the counts are nothing any more.
  void forget() noexcept { entered_ = 0; }

 private:
  const std::span<const Entered> calls_;
  std::size_t entered_ = 0;
};

/// A call in the call log: in flight from enter() on until leave(); without that, it has failed. Used by one thread.
class LoggedCall {
 public:
  LoggedCall() = default;
  LoggedCall(LoggedCall&& other) noexcept
      : recorder_(std::exchange(other.recorder_, nullptr)),
        record_(other.record_),
        place_(other.place_),
        flight_(other.flight_) {}
  LoggedCall& operator=(LoggedCall&&) = delete;
  ~LoggedCall() {
    if (recorder_) recorder_->fail(flight_, record_, place_);
  }

  /// `thread`: the calling one. The recorder has the communicator at `place`, and outlives this.
  void enter(CallingThread& thread, CallRecorder& recorder, int place, const CallRecord& record,
             const CallLabels* labels) noexcept {
    recorder_ = &recorder;
    record_ = record;
    place_ = place;
    flight_ = recorder.enter(thread, record_, place);
    if (labels && !labels->empty()) [[unlikely]]
      recorder.label(LabelledCall::of(record_, *labels));
  }
  /// Nothing where it was not entered.
  void leave(Nanoseconds now) noexcept {
    record_.leave = now;
    if (CallRecorder* const recorder = std::exchange(recorder_, nullptr)) recorder->leave(flight_, record_);
  }

 private:
  CallRecorder* recorder_ = nullptr;  ///< null: nobody is to be told
  CallRecord record_;
  int place_ = noPlace;
  Flight flight_ = noFlight;
};

}  // namespace falcon
