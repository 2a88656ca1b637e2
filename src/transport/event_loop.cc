#include "transport/event_loop.h"

#include <sys/epoll.h>
#include <sys/eventfd.h>

#include <algorithm>
#include <cerrno>

#include "base/contained.h"
#include "base/log.h"
#include "base/system_error.h"

namespace falcon::transport {
namespace {

constexpr EventLoop::Token wakeToken = 0;
constexpr std::int64_t longestSleep = 3'600'000;  // milliseconds, of a loop that has a timer

// A handler must not throw; if one does (no memory), the job should not end for it.
template <class Function>
void guarded(const Function& function) {
  contained(function, [](const char* problem) { log::notice("a network handler failed: {}", problem); });
}

}  // namespace

Result<std::shared_ptr<EventLoop>> EventLoop::create() {
  auto loop = std::make_shared<EventLoop>();
  loop->epoll_ = newDescriptor(epoll_create1(EPOLL_CLOEXEC));
  loop->wakeUp_ = newDescriptor(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.u64 = wakeToken;
  if (!loop->epoll_ || !loop->wakeUp_ || epoll_ctl(loop->epoll_.get(), EPOLL_CTL_ADD, loop->wakeUp_.get(), &event) != 0)
    return log::decided(Error::system("the network thread cannot be set up: {}", reasonOf(errno)));
  return loop;
}

void EventLoop::run() {
  threadId_.store(std::this_thread::get_id(), std::memory_order_relaxed);
  epoll_event events[64];
  std::unique_lock lock(mutex_);
  while (!stopping_) {
    const int sleep = timeout();
    lock.unlock();
    const int count = epoll_wait(epoll_.get(), events, std::size(events), sleep);
    lock.lock();
    for (int i = 0; i < count && !stopping_; ++i) {
      if (events[i].data.u64 != wakeToken) {
        dispatch(lock, events[i].data.u64, static_cast<short>(events[i].events));
        continue;
      }
      std::uint64_t ignored;
      [[maybe_unused]] const auto taken = ::read(wakeUp_.get(), &ignored, sizeof ignored);
    }
    ringTimers(lock);
    runPosted(lock);
  }
}

void EventLoop::stop() {
  const std::lock_guard lock(mutex_);
  stopping_ = true;
  wake();
}

void EventLoop::wake() {
  const std::uint64_t one = 1;
  [[maybe_unused]] const auto written = ::write(wakeUp_.get(), &one, sizeof one);
}

/// Until the next timer, in milliseconds; -1: there is none.
int EventLoop::timeout() const {
  if (due_.empty()) return -1;
  const auto left =
      std::chrono::ceil<std::chrono::milliseconds>(due_.begin()->first - std::chrono::steady_clock::now());
  return static_cast<int>(std::clamp<std::int64_t>(left.count(), 0, longestSleep));
}

/// Outside the lock. What the handler owns may end in here.
template <class Handler, class... Arguments>
void EventLoop::call(std::unique_lock<std::mutex>& lock, Token token, std::shared_ptr<Handler> handler,
                     Arguments... arguments) {
  running_.push_back(token);
  lock.unlock();
  guarded([&] { (*handler)(arguments...); });
  handler.reset();
  lock.lock();
  std::erase(running_, token);
  handlerLeft_.notify_all();
}

void EventLoop::dispatch(std::unique_lock<std::mutex>& lock, Token token, short events) {
  const auto found = watches_.find(token);
  if (found == watches_.end()) return;  // unwatched since epoll_wait returned
  // Without memory for it nothing is lost: epoll tells of what was not handled again.
  contained([&] { call(lock, token, found->second.handler, events); }, [](const char*) {});
}

void EventLoop::ringTimers(std::unique_lock<std::mutex>& lock) {
  const Instant now = due_.empty() ? Instant() : std::chrono::steady_clock::now();
  // One that is set again while it rings is later than `now`: its turn comes the next time.
  while (!stopping_ && !due_.empty() && due_.begin()->first <= now) {
    const Token token = due_.begin()->second;
    Timer& timer = timers_.at(token);
    unset(timer);
    contained([&] { call(lock, token, timer.ring); },
              [](const char* problem) { log::notice("a time limit does not hold: {}", problem); });
  }
}

void EventLoop::unset(Timer& timer) {
  if (!timer.node) timer.node = due_.extract(timer.place);
}

EventLoop::Token EventLoop::addTimer(std::function<void()> ring) {
  const Token token = newToken();
  Due alone;
  alone.emplace(Instant(), token);
  const std::lock_guard lock(mutex_);
  timers_.try_emplace(
      token, Timer{std::make_shared<std::function<void()>>(std::move(ring)), alone.extract(alone.begin()), {}});
  return token;
}

void EventLoop::setTimer(Token token, Nanoseconds fromNow) {
  const std::lock_guard lock(mutex_);
  const auto found = timers_.find(token);
  if (found == timers_.end()) return;
  Timer& timer = found->second;
  unset(timer);
  timer.node.key() = std::chrono::steady_clock::now() + fromNow;
  timer.place = due_.insert(std::move(timer.node));
  if (timer.place == due_.begin() && !onOwnThread()) wake();
}

void EventLoop::removeTimer(Token token) {
  Timer removed;  // destroyed outside the lock
  std::unique_lock lock(mutex_);
  const auto found = timers_.find(token);
  if (found == timers_.end()) return;
  unset(found->second);
  removed = std::move(found->second);
  timers_.erase(found);
  waitUntilLeft(lock, token);
  lock.unlock();
}

void EventLoop::runPosted(std::unique_lock<std::mutex>& lock) {
  std::vector<std::function<void()>> work;
  work.swap(posted_);
  lock.unlock();
  for (auto& item : work) {
    guarded(item);
    item = nullptr;
  }
  lock.lock();
}

void EventLoop::watch(int descriptor, short events, Reactor::EventHandler handler) {
  epoll_event event{};
  event.events = static_cast<std::uint32_t>(static_cast<unsigned short>(events));
  std::shared_ptr<Reactor::EventHandler> replaced;  // destroyed outside the lock
  const std::lock_guard lock(mutex_);
  const auto found = tokens_.find(descriptor);
  const bool known = found != tokens_.end();
  event.data.u64 = known ? found->second : newToken();
  Watch& entry = watches_[event.data.u64];
  replaced = std::move(entry.handler);
  entry = {descriptor, std::make_shared<Reactor::EventHandler>(std::move(handler))};
  tokens_[descriptor] = event.data.u64;
  // The number may have been closed and given out again behind our back: then epoll does not know it any more.
  if (known && epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, descriptor, &event) == 0) return;
  if (epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, descriptor, &event) != 0)
    log::notice("descriptor {} cannot be watched: {}", descriptor, reasonOf(errno));
}

void EventLoop::unwatch(int descriptor) {
  std::shared_ptr<Reactor::EventHandler> dropped;
  std::unique_lock lock(mutex_);
  const auto found = tokens_.find(descriptor);
  if (found == tokens_.end()) return;
  const Token token = found->second;
  tokens_.erase(found);
  dropped = std::move(watches_[token].handler);
  watches_.erase(token);
  epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, descriptor, nullptr);
  waitUntilLeft(lock, token);
  lock.unlock();
}

void EventLoop::post(std::function<void()> work) {
  const std::lock_guard lock(mutex_);
  posted_.push_back(std::move(work));
  wake();
}

void EventLoop::entering(Token token) {
  const std::lock_guard lock(mutex_);
  running_.push_back(token);
}

void EventLoop::left(Token token) {
  const std::lock_guard lock(mutex_);
  std::erase(running_, token);
  handlerLeft_.notify_all();
}

void EventLoop::waitUntilLeft(Token token) {
  std::unique_lock lock(mutex_);
  waitUntilLeft(lock, token);
}

void EventLoop::waitUntilLeft(std::unique_lock<std::mutex>& lock, Token token) {
  if (onOwnThread()) return;
  handlerLeft_.wait(lock, [&] { return std::find(running_.begin(), running_.end(), token) == running_.end(); });
}

}  // namespace falcon::transport
