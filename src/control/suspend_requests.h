// What this process has asked of the controller and has no answer to yet: ncclFalconSuspend and ncclFalconResume wait
// here.
#pragma once

#include <condition_variable>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <vector>

#include "base/result.h"
#include "control/messages.h"

namespace falcon::control {

/// Thread-safe: the application's threads open and wait, the monitor's sends and answers.
class SuspendRequests {
 public:
  /// For a request that nobody waits for.
  std::uint64_t newNumber();
  std::uint64_t open(const std::function<Message(std::uint64_t number)>& request);
  /// Until it is answered. The controller has limits for all it does, and where it dies there is another.
  Status wait(std::uint64_t number);

  /// What to send; nothing where it was answered.
  std::optional<Message> message(std::uint64_t number) const;
  /// The controller has changed. Those that have no answer, to be sent again: to suspensions, answers to what was sent
  /// before do not count any more. A controller that refuses, as it goes, what its successor then carries out would
  /// leave the job held and nobody knowing of it.
  std::vector<std::uint64_t> again();
  void answer(const SuspendAnswer& answer);
  void failAll(const Error& error);

 private:
  struct Request {
    Message message;
    std::optional<Status> outcome;
  };

  mutable std::mutex mutex_;
  std::condition_variable answered_;
  std::uint64_t last_ = 0;
  std::map<std::uint64_t, Request> requests_;
};

}  // namespace falcon::control
