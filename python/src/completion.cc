#include "completion.h"

#include <utility>

namespace falcon::python {

void Completion::end(std::optional<std::string> error) {
  std::vector<std::uint64_t> tokens;
  {
    const std::lock_guard lock(mutex_);
    if (ended_) return;
    ended_ = true;
    error_ = std::move(error);
    tokens = std::exchange(tokens_, {});
    changed_.notify_all();
  }
  for (const std::uint64_t token : tokens) FinishedTokens::instance().add(token);
}

bool Completion::ended() const {
  const std::lock_guard lock(mutex_);
  return ended_;
}

bool Completion::wait(Milliseconds timeout) const {
  std::unique_lock lock(mutex_);
  return changed_.wait_for(lock, timeout, [this] { return ended_; });
}

std::optional<std::string> Completion::error() const {
  const std::lock_guard lock(mutex_);
  return error_;
}

void Completion::notify(std::uint64_t token) {
  {
    const std::lock_guard lock(mutex_);
    if (!ended_) {
      tokens_.push_back(token);
      return;
    }
  }
  FinishedTokens::instance().add(token);
}

FinishedTokens& FinishedTokens::instance() {
  // Never destroyed: threads of the library may add to it while the process exits.
  static auto* const only = new FinishedTokens;
  return *only;
}

void FinishedTokens::add(std::uint64_t token) {
  const std::lock_guard lock(mutex_);
  tokens_.push_back(token);
  changed_.notify_one();
}

std::vector<std::uint64_t> FinishedTokens::next() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return stopped_ || !tokens_.empty(); });
  if (stopped_) return {};
  return std::exchange(tokens_, {});
}

void FinishedTokens::stop() {
  const std::lock_guard lock(mutex_);
  stopped_ = true;
  changed_.notify_all();
}

void FinishedTokens::restart() {
  const std::lock_guard lock(mutex_);
  stopped_ = false;
}

}  // namespace falcon::python
