// Whether this process's framework has been asked to restart: proposed, decided, and looked up at each iteration's end.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <optional>
#include <vector>

#include "base/types.h"

namespace falcon::control {

/// Two-phase like the plans of micro-batches. Thread-safe: the monitor proposes and decides, the training thread looks
/// up. A restart that was decided stays decided: the job is about to end.
class RestartBook {
 public:
  /// False when nobody here asks (see wanted()), so that nothing would come of it, iteration `from` has ended here,
  /// or another proposal is undecided.
  bool propose(std::uint64_t agreement, std::uint64_t from, std::vector<Rank> leaveOut);
  void decide(std::uint64_t agreement, bool commit);

  /// Whether the job is to restart at the end of `iteration`; waits while a proposal for it is undecided.
  bool wanted(std::uint64_t iteration);
  /// The same of what is decided already: neither waits, nor counts as asking.
  bool isDecidedFor(std::uint64_t iteration) const;
  /// The framework asks at its iterations' ends.
  bool isAsked() const;
  /// The next iteration that has not ended.
  std::uint64_t nextIteration() const;
  /// Whom to leave out, ranks of the job; nothing: no restart was decided.
  std::optional<std::vector<Rank>> decided() const;

 private:
  struct Proposal {
    std::uint64_t agreement = 0, from = 0;
    std::vector<Rank> leaveOut;
  };
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::optional<Proposal> proposal_, decided_;
  std::uint64_t nextIteration_ = 0;
  bool asked_ = false;
};

}  // namespace falcon::control
