#include "api/offspring.h"

namespace falcon::api {

std::uint64_t Offspring::queue(bool instead) {
  const std::lock_guard lock(mutex_);
  if (instead) underWay_.clear();
  changed_.notify_all();
  underWay_.insert(next_);
  return next_++;
}

void Offspring::await(std::uint64_t place) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return !underWay_.contains(place) || *underWay_.begin() == place; });
}

void Offspring::done(std::uint64_t place) {
  const std::lock_guard lock(mutex_);
  underWay_.erase(place);
  changed_.notify_all();
}

bool Offspring::anyUnderWay() const {
  const std::lock_guard lock(mutex_);
  return !underWay_.empty();
}

}  // namespace falcon::api
