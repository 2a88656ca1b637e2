// The end of something that goes on beside Python: who waits for it, and who wants to hear of it.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

namespace falcon::python {

using Milliseconds = std::chrono::milliseconds;

/// Thread-safe. Nothing here touches Python: callbacks of the library end it on threads of theirs.
class Completion {
 public:
  /// Once. `error`: what went wrong, if anything did.
  void end(std::optional<std::string> error);

  bool ended() const;
  /// False: not within the time.
  bool wait(Milliseconds timeout) const;
  /// Of one that has ended.
  std::optional<std::string> error() const;
  /// FinishedTokens gets `token` when it ends, or now.
  void notify(std::uint64_t token);

 private:
  mutable std::mutex mutex_;
  mutable std::condition_variable changed_;
  bool ended_ = false;
  std::optional<std::string> error_;
  std::vector<std::uint64_t> tokens_;
};

/// What has ended of that which a Python thread asked for: it sleeps in here, without the interpreter's lock.
class FinishedTokens {
 public:
  static FinishedTokens& instance();
  void add(std::uint64_t token);
  /// Those since the last call, at least one; none: stop() was called.
  std::vector<std::uint64_t> next();
  void stop();
  /// After a stop(), for another thread.
  void restart();

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::uint64_t> tokens_;
  bool stopped_ = false;
};

}  // namespace falcon::python
