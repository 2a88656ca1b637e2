// Writes call sequences as a training job makes them, with times.
#pragma once

#include <utility>
#include <vector>

#include "instrument/period_finder.h"

namespace falcon::instrument {

/// A call by its name: the same letter is the same call. Upper case letters are collectives, lower case ones sends.
inline CallRecord call(char name, CommunicatorId communicator = 1) {
  CallRecord record;
  record.communicator = communicator;
  const bool upper = name >= 'A' && name <= 'Z';
  record.operation = upper ? Operation::allReduce : Operation::send;
  record.peer = upper ? -1 : name;
  record.count = 1000u + static_cast<unsigned char>(name);
  return record;
}

/// Feeds a finder and keeps a clock: every call takes 1 ms inside and 1 ms outside of the library.
class CallScript {
 public:
  explicit CallScript(const PeriodOptions& options = {}) : finder_(options) {}

  void play(CallRecord record, Nanoseconds inside = 1ms, Nanoseconds outside = 1ms) {
    now_ += outside;
    record.enter = now_;
    now_ += inside;
    record.leave = now_;
    for (auto& sample : finder_.add(record)) samples_.push_back(std::move(sample));
  }
  void play(const char* names, int times = 1, CommunicatorId communicator = 1) {
    for (int i = 0; i < times; ++i)
      for (const char* name = names; *name; ++name) play(call(*name, communicator));
  }
  void wait(Nanoseconds duration) { now_ += duration; }

  PeriodFinder& finder() { return finder_; }
  Nanoseconds now() const { return now_; }
  /// What has come since the last take.
  std::vector<IterationSample> take() { return std::exchange(samples_, {}); }

 private:
  PeriodFinder finder_;
  Nanoseconds now_{0};
  std::vector<IterationSample> samples_;
};

}  // namespace falcon::instrument
