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
  network_ = std::move(network);
  kept_ = std::move(watch);
  if (layout_) static_cast<void>(job->registerLayout(*this, *layout_));
  watch_.store(kept_.get(), std::memory_order_release);
}

void WatchedCommunicator::setPart(const control::RegisteredPart& layout) {
  const std::lock_guard lock(mutex_);
  layout_ = layout;
  if (kept_ && !ended_) static_cast<void>(kept_->job->registerLayout(*this, layout));
}

bool WatchedCommunicator::hasLayout() const {
  const std::lock_guard lock(mutex_);
  return layout_.has_value();
}

std::optional<control::RegisteredPart> WatchedCommunicator::layout() const {
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

void WatchedCommunicator::awaitHeldGroups() const {
  for (int held = heldGroups_.load(); held != 0; held = heldGroups_.load()) heldGroups_.wait(held);
}

void WatchedCommunicator::groupIsOver() {
  if (heldGroups_.fetch_sub(1) == 1) heldGroups_.notify_all();
}

void WatchedCommunicator::end(Goodbye goodbye) {
  std::shared_ptr<bootstrap::CommunicatorNetwork> network;  // says goodbye without the lock
  const std::lock_guard lock(mutex_);
  if (ended_.exchange(true)) return;
  if (goodbye == Goodbye::said && network_) network_->waitForNobody();
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

std::uint64_t WatchedCommunicator::nextShrink(const std::vector<Rank>& excluded) {
  const std::lock_guard lock(mutex_);
  return shrinksAsked_[excluded]++;
}

WatchedCommunicator::Step::Step(std::shared_ptr<WatchedCommunicator> of, std::shared_future<void> mine)
    : of_(std::move(of)) {
  const std::lock_guard lock(of_->mutex_);
  ++of_->steps_;
  before_ = std::exchange(of_->lastStep_, std::move(mine));
}

void WatchedCommunicator::Step::awaitTurn() {
  std::exchange(before_, {}).wait();
}

WatchedCommunicator::Step::~Step() {
  std::shared_ptr<bootstrap::CommunicatorNetwork> network;  // says goodbye without the lock
  const std::lock_guard lock(of_->mutex_);
  if (before_.valid()) of_->lastStep_ = std::move(before_);
  if (--of_->steps_ == 0 && of_->ended_) network = std::exchange(of_->network_, nullptr);
}

}  // namespace falcon::preload
