// The thread behind a Reactor: sleeps in epoll, calls handlers. Knows nothing of connections.
#pragma once

#include <atomic>
#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <thread>
#include <unordered_map>
#include <vector>

#include "base/owned.h"
#include "base/result.h"
#include "transport/reactor.h"

namespace falcon::transport {

/// Thread-safe. The thread holds a reference, so that the loop may be let go of from its own thread.
class EventLoop : public std::enable_shared_from_this<EventLoop> {
 public:
  using Token = std::uint64_t;

  static Result<std::shared_ptr<EventLoop>> create();

  /// The thread's body; returns after stop().
  void run();
  void stop();
  bool onOwnThread() const { return threadId_.load(std::memory_order_relaxed) == std::this_thread::get_id(); }

  /// Watching a watched descriptor again replaces events and handler.
  void watch(int descriptor, short events, Reactor::EventHandler handler);
  void unwatch(int descriptor);
  void post(std::function<void()> work);

  Token addTimer(std::function<void()> ring);
  void setTimer(Token timer, Nanoseconds fromNow);
  void removeTimer(Token timer);

  /// For handlers that others keep (connections): a token, and what forget() waits for.
  Token newToken() { return nextToken_.fetch_add(1, std::memory_order_relaxed); }
  void entering(Token token);
  void left(Token token);
  /// Returns when no handler with this token is running; at once on the loop's own thread.
  void waitUntilLeft(Token token);

 private:
  struct Watch {
    int descriptor;
    std::shared_ptr<Reactor::EventHandler> handler;
  };

  using Instant = std::chrono::steady_clock::time_point;
  using Due = std::multimap<Instant, Token>;
  struct Timer {
    std::shared_ptr<std::function<void()>> ring;
    Due::node_type node;  ///< while it is not set
    Due::iterator place;  ///< while it is
  };

  void wake();
  int timeout() const;
  void unset(Timer& timer);
  void ringTimers(std::unique_lock<std::mutex>& lock);
  template <class Handler, class... Arguments>
  void call(std::unique_lock<std::mutex>& lock, Token token, std::shared_ptr<Handler> handler, Arguments... arguments);
  void dispatch(std::unique_lock<std::mutex>& lock, Token token, short events);
  void runPosted(std::unique_lock<std::mutex>& lock);
  void waitUntilLeft(std::unique_lock<std::mutex>& lock, Token token);

  FileDescriptor epoll_;
  FileDescriptor wakeUp_;
  std::atomic<std::thread::id> threadId_{};
  std::atomic<Token> nextToken_{1};

  std::mutex mutex_;
  std::condition_variable handlerLeft_;
  bool stopping_ = false;
  std::unordered_map<Token, Watch> watches_;
  std::unordered_map<int, Token> tokens_;  // by descriptor
  std::unordered_map<Token, Timer> timers_;
  Due due_;                     // those that are set
  std::vector<Token> running_;  // handlers may nest
  std::vector<std::function<void()>> posted_;
};

}  // namespace falcon::transport
