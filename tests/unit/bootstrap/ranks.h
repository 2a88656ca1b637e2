// Ranks for tests: threads with reactors of their own, or forked processes.
#pragma once

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <functional>
#include <thread>

#include "bootstrap/communicator_network.h"
#include "bootstrap/random.h"
#include "bootstrap/rendezvous.h"

namespace falcon::bootstrap {

inline std::shared_ptr<transport::Reactor> reactor() {
  return *transport::makeReactor(*SocketAddress::parse("127.0.0.1:0"));
}

/// An id whose rendezvous runs on `host`.
inline UniqueId idOn(const std::shared_ptr<transport::Reactor>& host) {
  const UniqueId id{host->address(), randomNumber(), randomSecret()};
  Rendezvous::open(host, id, 60s);
  return id;
}

using Network = std::shared_ptr<CommunicatorNetwork>;

/// Runs `body(rank)` on a thread for each rank.
inline void onThreads(int size, const std::function<void(Rank)>& body) {
  std::vector<std::thread> threads;
  for (Rank rank = 0; rank < size; ++rank) threads.emplace_back([&body, rank] { body(rank); });
  for (std::thread& thread : threads) thread.join();
}

/// Networks of a communicator whose ranks all live in this process, each on its own reactor.
inline std::vector<Network> formed(int size) {
  const auto host = reactor();
  const UniqueId id = idOn(host);
  std::vector<Network> networks(static_cast<std::size_t>(size));
  onThreads(size, [&](Rank rank) {
    auto network = join(reactor(), id, rank, size, 60s);
    if (network)
      networks[static_cast<std::size_t>(rank)] = *network;
    else
      ADD_FAILURE() << network.error().message();
  });
  return networks;
}

inline std::ptrdiff_t count(const char* folder) {
  return std::distance(std::filesystem::directory_iterator(folder), std::filesystem::directory_iterator());
}

/// True once `condition` holds; false if it does not within the limit.
inline bool eventually(const std::function<bool()>& condition, Nanoseconds limit = 20s) {
  const auto deadline = std::chrono::steady_clock::now() + limit;
  while (!condition()) {
    if (std::chrono::steady_clock::now() >= deadline) return false;
    std::this_thread::sleep_for(5ms);
  }
  return true;
}

/// For tests that fork: the thread sanitizer cannot start threads in a child of a process that had some.
#if defined(__SANITIZE_THREAD__)
#define SKIP_IF_FORKS_CANNOT_BE_CHECKED() \
  GTEST_SKIP() << "forks of a process with threads are beyond the thread sanitizer"
#else
#define SKIP_IF_FORKS_CANNOT_BE_CHECKED() static_cast<void>(0)
#endif

/// A forked rank; killed at the end of its scope if it still runs.
class Process {
 public:
  /// `body` returns the exit code.
  explicit Process(const std::function<int()>& body) : id_(fork()) {
    if (id_ == 0) _exit(body());
  }
  Process(Process&& other) noexcept : id_(std::exchange(other.id_, -1)) {}
  ~Process() {
    if (id_ <= 0) return;
    kill(id_, SIGKILL);
    waitpid(id_, nullptr, 0);
  }
  void signal(int number) const { kill(id_, number); }
  /// The exit code; -1 if it did not exit by itself.
  int wait() {
    int status = -1;
    waitpid(id_, &status, 0);
    id_ = -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }

 private:
  pid_t id_;
};

}  // namespace falcon::bootstrap
