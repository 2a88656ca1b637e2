// A communicator whose members all live in one thread, over a Fabric.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>

#include "collectives/group_run.h"
#include "fabric.h"

namespace falcon::test {

using namespace collectives;

/// The network of one member, of which all shall see the same failure.
class FakeNetwork final : public bootstrap::CommunicatorNetwork {
 public:
  FakeNetwork(CommunicatorId id, Rank rank, int size, std::shared_ptr<std::optional<Error>> failure)
      : id_(id), rank_(rank), size_(size), failure_(std::move(failure)) {}
  CommunicatorId id() const override { return id_; }
  const transport::Secret& secret() const override { return secret_; }
  Rank rank() const override { return rank_; }
  int size() const override { return size_; }
  Result<std::vector<std::string>> allGather(std::string_view, Nanoseconds, const bootstrap::GivenUp&) override {
    return Error::internal("not here");
  }
  Result<std::shared_ptr<CommunicatorNetwork>> split(int, int, Nanoseconds, const bootstrap::GivenUp&) override {
    return Error::internal("not here");
  }
  Result<std::shared_ptr<CommunicatorNetwork>> shrink(std::span<const Rank>, Nanoseconds,
                                                      const bootstrap::GivenUp&) override {
    return Error::internal("not here");
  }
  void abort(std::string_view reason) override {
    if (!*failure_) *failure_ = Error::remote("{}", reason);
  }
  std::optional<Error> failure() const override { return *failure_; }
  void onFailure(std::function<void(const Error&)>) override {}
  void onDeparture(std::function<void(Rank)>) override {}

 private:
  CommunicatorId id_;
  Rank rank_;
  int size_;
  transport::Secret secret_{};
  std::shared_ptr<std::optional<Error>> failure_;
};

class KeepingRecorder final : public CallRecorder {
 public:
  Flight enter(CallingThread&, CallRecord&, int) noexcept override { return noFlight; }
  void leave(Flight, const CallRecord& record) noexcept override { records.push_back(record); }
  void fail(Flight, const CallRecord&, int) noexcept override {}
  std::vector<CallRecord> records;
};
class KeepingTransfers final : public TransferRecorder {
 public:
  KeepingTransfers() { enabled_ = true; }
  void record(const TransferTiming& timing) noexcept override { timings.push_back(timing); }
  std::vector<TransferTiming> timings;
};

/// All members of one communicator in this thread.
struct World {
  static constexpr std::size_t chunkBytes = 256;
  struct Options {
    bool recorded = false;
    bool checksCalls = false;
  };

  World(CommunicatorId id, int ranks, unsigned seed) : World(id, ranks, seed, Options{}) {}
  World(CommunicatorId id, int ranks, unsigned seed, Options options) : fabric(ranks, chunkBytes, seed) {
    std::vector<Rank> ring;
    for (Rank rank = 0; rank < ranks; ++rank) ring.push_back(rank);
    calls.resize(ranks);
    transfers.resize(ranks);
    for (Rank rank = 0; rank < ranks; ++rank) {
      networks.push_back(std::make_unique<FakeNetwork>(id, rank, ranks, failure));
      EngineHooks hooks;
      if (options.recorded) {
        calls[rank] = std::make_unique<KeepingRecorder>();
        transfers[rank] = std::make_unique<KeepingTransfers>();
        hooks.calls = calls[rank].get();
        hooks.transfers = transfers[rank].get();
      }
      MemberShape shape{rank, ranks, 1, 2, chunkBytes};
      shape.checksCalls = options.checksCalls;
      members.push_back(std::make_unique<LocalMember>(shape, fabric.portsOf(rank), *networks[rank], hooks, ring));
    }
  }
  LocalMember& operator[](Rank rank) { return *members[rank]; }

  Fabric fabric;
  std::shared_ptr<std::optional<Error>> failure = std::make_shared<std::optional<Error>>();
  std::vector<std::unique_ptr<FakeNetwork>> networks;
  std::vector<std::unique_ptr<KeepingRecorder>> calls;
  std::vector<std::unique_ptr<KeepingTransfers>> transfers;
  std::vector<std::unique_ptr<LocalMember>> members;
};

/// Turns for all runs, in random order, until all have finished.
inline testing::AssertionResult driveAll(std::vector<GroupRun*> runs, unsigned seed, int patience = 20000) {
  std::mt19937 random(seed);
  int idle = 0;
  const auto unfinished = [&] {
    return std::any_of(runs.begin(), runs.end(), [](const GroupRun* run) { return !run->finished(); });
  };
  while (unfinished()) {
    idle = runs[random() % runs.size()]->progress() ? 0 : idle + 1;
    if (idle > patience) return testing::AssertionFailure() << "stuck";
  }
  return testing::AssertionSuccess();
}

inline std::vector<GroupRun> freshRuns(int ranks) {
  std::vector<GroupRun> runs;
  for (int i = 0; i < ranks; ++i) runs.emplace_back(SystemClock::instance());
  return runs;
}

}  // namespace falcon::test
