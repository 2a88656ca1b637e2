#include "preload/watched_communicator.h"

#include <utility>

namespace falcon::preload {

WatchedCommunicator::~WatchedCommunicator() {
  end();
}

void WatchedCommunicator::introduce(std::shared_ptr<control::Job> job,
                                    std::shared_ptr<bootstrap::CommunicatorNetwork> network,
                                    std::vector<collectives::MemberInfo> members) {
  const std::lock_guard lock(mutex_);
  if (ended_) return;
  id_ = network->id();
  auto watch = std::make_unique<Watch>(Watch{job, network->id(), job->hooks(), noPlace, &job->launchedWork()});
  watch->place = job->add({this, nullptr, std::move(members), network->secret(), {}, &counts_});
  network_ = std::move(network);
  kept_ = std::move(watch);
  watch_.store(kept_.get(), std::memory_order_release);
}

void WatchedCommunicator::end() {
  std::shared_ptr<bootstrap::CommunicatorNetwork> network;  // says goodbye without the lock
  const std::lock_guard lock(mutex_);
  if (ended_.exchange(true)) return;
  network = std::exchange(network_, nullptr);
  if (kept_) kept_->job->remove(*this);
}

std::shared_ptr<bootstrap::CommunicatorNetwork> WatchedCommunicator::network() const {
  const std::lock_guard lock(mutex_);
  return network_;
}

std::shared_ptr<control::Job> WatchedCommunicator::job() const {
  const std::lock_guard lock(mutex_);
  return kept_ && !ended_ ? kept_->job : nullptr;
}

std::shared_future<void> WatchedCommunicator::queueStep(std::shared_future<void> mine) {
  const std::lock_guard lock(mutex_);
  return std::exchange(lastStep_, std::move(mine));
}

}  // namespace falcon::preload
