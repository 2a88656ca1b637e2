// Brings sockets to where both ends have proven themselves to each other, behind the back of who needs them.
#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "transport/alarm.h"
#include "transport/handshake.h"
#include "transport/socket_port.h"

namespace falcon::transport {

/// Thread-safe. Where a peer turns somebody away, because too many wait there to be expected, it comes again for 60 s.
class Dialling {
 public:
  struct Call {
    SocketAddress to;
    Hello hello;
    std::string peerName;  ///< for messages
    /// One of the two, on the reactor's thread and with no lock of this. What the peer says next is the caller's.
    std::function<void(SharedSocket socket)> proven;
    std::function<void(const Error& error)> failed;
  };

  explicit Dialling(std::shared_ptr<Reactor> reactor) : reactor_(std::move(reactor)) {}
  /// Afterwards no caller is told anything.
  ~Dialling();
  Dialling(const Dialling&) = delete;

  /// All or none: an error (no socket, mostly) means that none was begun, and nobody is told.
  Status begin(std::vector<Call> calls);

 private:
  struct Attempt {
    Call call;
    SharedSocket socket;
    Greeting greeting;
    std::chrono::steady_clock::time_point begun;
  };
  using Number = std::uint64_t;

  // With mutex_ held.
  void watch(Number number, const Attempt& attempt);
  Call end(std::map<Number, Attempt>::iterator attempt);

  // On the reactor's thread.
  void onConnected(Number number);
  void onChallenge(Number number);
  void fail(Number number, const Error& error);
  /// Runs with mutex_ held, and without it while the caller is told: the destructor waits for that.
  template <typename Tell>
  void tell(std::unique_lock<std::mutex>& lock, const Tell& caller);
  void again();

  const std::shared_ptr<Reactor> reactor_;

  std::mutex mutex_;
  std::condition_variable told_;
  bool telling_ = false;  // on the reactor's thread
  bool closing_ = false;
  Number last_ = 0;
  std::map<Number, Attempt> attempts_;
  std::vector<Number> turnedAway_;
  std::unique_ptr<Alarm> alarm_;  // once somebody was turned away
};

}  // namespace falcon::transport
