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
    lock.unlock();
    const int count = epoll_wait(epoll_.get(), events, std::size(events), -1);
    lock.lock();
    for (int i = 0; i < count && !stopping_; ++i) {
      if (events[i].data.u64 != wakeToken) {
        dispatch(lock, events[i].data.u64, static_cast<short>(events[i].events));
        continue;
      }
      std::uint64_t ignored;
      [[maybe_unused]] const auto taken = ::read(wakeUp_.get(), &ignored, sizeof ignored);
    }
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

void EventLoop::dispatch(std::unique_lock<std::mutex>& lock, Token token, short events) {
  const auto found = watches_.find(token);
  if (found == watches_.end()) return;  // unwatched since epoll_wait returned
  auto handler = found->second.handler;
  // Without memory for it nothing is lost: epoll tells of what was not handled again.
  if (!contained([&] { running_.push_back(token); }, [](const char*) {})) return;
  lock.unlock();
  guarded([&] { (*handler)(events); });
  handler.reset();  // what it owns may end here, outside the lock
  lock.lock();
  std::erase(running_, token);
  handlerLeft_.notify_all();
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
