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
  if (ended_ && steps_ == 0) return;
  job_ = job;
  if (ended_) {
    network_ = std::move(network);
    return;
  }
  id_ = network->id();
  auto watch = std::make_unique<Watch>(Watch{job, network->id(), job->hooks(), noPlace, &job->launchedWork()});
  watch->place = job->add({this, nullptr, std::move(members), network->secret(), {}, &counts_});
  if (layout_) static_cast<void>(job->registerLayout(*this, *layout_));
  network_ = std::move(network);
  kept_ = std::move(watch);
  watch_.store(kept_.get(), std::memory_order_release);
}

void WatchedCommunicator::setLayout(const control::Layout& layout) {
  const std::lock_guard lock(mutex_);
  layout_ = layout;
  if (kept_ && !ended_) static_cast<void>(kept_->job->registerLayout(*this, layout));
}

bool WatchedCommunicator::hasLayout() const {
  const std::lock_guard lock(mutex_);
  return layout_.has_value();
}

std::optional<control::Layout> WatchedCommunicator::layout() const {
  const std::lock_guard lock(mutex_);
  return layout_;
}

void WatchedCommunicator::keepGrowthId(const bootstrap::UniqueId& id) {
  const std::lock_guard lock(mutex_);
  growthId_ = id;
}

std::optional<bootstrap::UniqueId> WatchedCommunicator::takeGrowthId() {
  const std::lock_guard lock(mutex_);
  return std::exchange(growthId_, std::nullopt);
}

void WatchedCommunicator::end() {
  std::shared_ptr<bootstrap::CommunicatorNetwork> network;  // says goodbye without the lock
  const std::lock_guard lock(mutex_);
  if (ended_.exchange(true)) return;
  if (steps_ == 0) network = std::exchange(network_, nullptr);
  if (kept_) kept_->job->remove(*this);
}

bool WatchedCommunicator::isOver() const {
  const std::lock_guard lock(mutex_);
  return ended_ && steps_ == 0;
}

std::shared_ptr<bootstrap::CommunicatorNetwork> WatchedCommunicator::network() const {
  const std::lock_guard lock(mutex_);
  return network_;
}

std::shared_ptr<control::Job> WatchedCommunicator::job() const {
  const std::lock_guard lock(mutex_);
  return network_ ? job_ : nullptr;
}

WatchedCommunicator::QueuedStep WatchedCommunicator::queueStep(const std::shared_ptr<WatchedCommunicator>& of,
                                                               std::shared_future<void> mine) {
  QueuedStep queued;
  {
    const std::lock_guard lock(of->mutex_);
    ++of->steps_;
    queued.before = std::exchange(of->lastStep_, std::move(mine));
  }
  queued.step = std::make_shared<Step>(of);
  return queued;
}

void WatchedCommunicator::stepEnds() {
  std::shared_ptr<bootstrap::CommunicatorNetwork> network;  // says goodbye without the lock
  const std::lock_guard lock(mutex_);
  if (--steps_ == 0 && ended_) network = std::exchange(network_, nullptr);
}

}  // namespace falcon::preload
