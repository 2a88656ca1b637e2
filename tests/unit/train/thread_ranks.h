// Ranks as threads of one process, with the trainer's communication done through memory.
#pragma once

#include <barrier>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <thread>
#include <vector>

#include "train/pipeline.h"
#include "train/reducer.h"

namespace falcon::train {

/// Runs body(rank) on a thread for each rank.
inline void runRanks(int ranks, const std::function<void(int)>& body) {
  std::vector<std::thread> threads;
  for (int rank = 0; rank < ranks; ++rank) threads.emplace_back(body, rank);
  for (auto& thread : threads) thread.join();
}

/// An AllReduce for a group of threads; sums in rank order, so all get the same bits.
class SharedSum {
 public:
  explicit SharedSum(int ranks) : barrier_(ranks), inputs_(ranks) {}

  void sum(int rank, double* values, std::size_t count) {
    inputs_[rank].assign(values, values + count);
    barrier_.arrive_and_wait();
    std::fill(values, values + count, 0.0);
    for (const auto& input : inputs_) {
      for (std::size_t i = 0; i < count; ++i) values[i] += input.at(i);
    }
    barrier_.arrive_and_wait();
  }

 private:
  std::barrier<> barrier_;
  std::vector<std::vector<double>> inputs_;
};

class ThreadReducer final : public Reducer<double> {
 public:
  ThreadReducer(SharedSum& shared, int rank) : shared_(shared), rank_(rank) {}
  void sum(double* values, std::size_t count) override { shared_.sum(rank_, values, count); }

 private:
  SharedSum& shared_;
  int rank_;
};

/// Messages between the stages of one pipeline, in order for each pair.
class Mailboxes {
 public:
  void put(int from, int to, const double* values, std::size_t count) {
    const std::lock_guard lock(mutex_);
    boxes_[{from, to}].emplace_back(values, values + count);
    changed_.notify_all();
  }
  void take(int from, int to, double* values, std::size_t count) {
    std::unique_lock lock(mutex_);
    auto& box = boxes_[{from, to}];
    changed_.wait(lock, [&] { return !box.empty(); });
    std::memcpy(values, box.front().data(), count * sizeof(double));
    box.pop_front();
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::pair<int, int>, std::deque<std::vector<double>>> boxes_;
};

class ThreadLink final : public PipelineLink<double> {
 public:
  ThreadLink(Mailboxes& boxes, int stage) : boxes_(boxes), stage_(stage) {}
  void exchange(int to, const double* sent, int from, double* received, std::size_t count) override {
    if (to >= 0) boxes_.put(stage_, to, sent, count);
    if (from >= 0) boxes_.take(from, stage_, received, count);
  }

 private:
  Mailboxes& boxes_;
  int stage_;
};

}  // namespace falcon::train
