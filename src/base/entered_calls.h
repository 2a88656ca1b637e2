// A call from its entry to its end, as it is counted for those who hold the job, and as the call log shows it.
#pragma once

#include <algorithm>
#include <cstddef>
#include <span>
#include <utility>

#include "base/call.h"
#include "base/call_counts.h"
#include "base/recorders.h"

namespace falcon {

/// The calls of one event, counted as entered until leave(); without that they have failed, and do not count.
/// An `Entered` has the `counts()` of its communicator, what is `counted()` there, and says whether it `isCalledOff()`.
/// Used by the thread that calls.
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
    next.counts().enter(next.counted());
  }
  void enter() noexcept override {
    while (entered_ < calls_.size()) enterNext();
  }
  void takeBack() noexcept override {
    while (entered_ > 0) {
      const Entered& last = calls_[--entered_];
      last.counts().takeBack(last.counted());
    }
  }
  bool isCalledOff() const noexcept override {
    return std::any_of(calls_.begin(), calls_.end(), [](const Entered& each) { return each.isCalledOff(); });
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
  LoggedCall() {}  // NOLINT(modernize-use-equals-default): a defaulted one is zeroed first, which takes 15 ns of a call
  LoggedCall(LoggedCall&& other) noexcept
      : record(other.record),
        recorder_(std::exchange(other.recorder_, nullptr)),
        place_(other.place_),
        flight_(other.flight_) {}
  LoggedCall& operator=(LoggedCall&&) = delete;
  ~LoggedCall() {
    if (recorder_) recorder_->fail(flight_, record, place_);
  }

  /// What is logged: to be filled in before it is entered, but for what the recorder knows, and its end.
  CallRecord record;

  /// `thread`: the calling one. The recorder has the communicator at `place`, and outlives this.
  void enter(CallingThread& thread, CallRecorder& recorder, int place, const CallLabels* labels) noexcept {
    recorder_ = &recorder;
    place_ = place;
    flight_ = recorder.enter(thread, record, place);
    if (labels && !labels->empty()) [[unlikely]]
      recorder.label(LabelledCall::of(record, *labels));
  }
  /// Nothing where it was not entered.
  void leave(Nanoseconds now) noexcept {
    record.leave = now;
    if (CallRecorder* const recorder = std::exchange(recorder_, nullptr)) recorder->leave(flight_, record);
  }

 private:
  CallRecorder* recorder_ = nullptr;  ///< null: nobody is to be told
  int place_ = noPlace;
  Flight flight_ = noFlight;
};

}  // namespace falcon
