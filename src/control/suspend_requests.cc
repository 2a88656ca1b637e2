#include "control/suspend_requests.h"

#include <utility>

#include "base/log.h"

namespace falcon::control {
namespace {

Status statusOf(const SuspendAnswer& answer) {
  switch (answer.outcome) {
    case SuspendOutcome::done:
      return {};
    case SuspendOutcome::already:
    case SuspendOutcome::notSuspended:
      return log::decided(Error::invalidUsage("{}", answer.text));
    case SuspendOutcome::rankDied:
      return log::decided(Error::remote("{}", answer.text));
    case SuspendOutcome::notAllCame:
    case SuspendOutcome::givenUp:
      break;
  }
  return log::decided(Error::system("the job is not suspended, and goes on: {}", answer.text));
}

}  // namespace

std::uint64_t SuspendRequests::newNumber() {
  const std::lock_guard lock(mutex_);
  return ++last_;
}

std::uint64_t SuspendRequests::open(const std::function<Message(std::uint64_t number)>& request) {
  const std::lock_guard lock(mutex_);
  ++last_;
  requests_.emplace(last_, Request{request(last_), {}});
  return last_;
}

Status SuspendRequests::wait(std::uint64_t number) {
  std::unique_lock lock(mutex_);
  const auto request = requests_.find(number);
  answered_.wait(lock, [&] { return request->second.outcome.has_value(); });
  Status outcome = std::move(*request->second.outcome);
  requests_.erase(request);
  return outcome;
}

std::optional<Message> SuspendRequests::message(std::uint64_t number) const {
  const std::lock_guard lock(mutex_);
  const auto request = requests_.find(number);
  if (request == requests_.end() || request->second.outcome) return std::nullopt;
  return request->second.message;
}

std::vector<std::uint64_t> SuspendRequests::again() {
  const std::lock_guard lock(mutex_);
  std::vector<std::uint64_t> numbers;
  for (auto& [number, request] : requests_) {
    if (request.outcome) continue;
    if (auto* suspend = std::get_if<AskSuspend>(&request.message)) ++suspend->attempt;
    numbers.push_back(number);
  }
  return numbers;
}

void SuspendRequests::answer(const SuspendAnswer& answer) {
  {
    const std::lock_guard lock(mutex_);
    const auto request = requests_.find(answer.request);
    if (request == requests_.end() || request->second.outcome) return;
    const auto* suspend = std::get_if<AskSuspend>(&request->second.message);
    if (suspend && suspend->attempt != answer.attempt) return;
    request->second.outcome = statusOf(answer);
  }
  answered_.notify_all();
}

void SuspendRequests::failAll(const Error& error) {
  {
    const std::lock_guard lock(mutex_);
    for (auto& [number, request] : requests_)
      if (!request.outcome) request.outcome = Status(error);
  }
  answered_.notify_all();
}

}  // namespace falcon::control
