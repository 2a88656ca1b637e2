// Ranks for tests: threads with reactors of their own, or forked processes.
#pragma once

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <filesystem>
#include <functional>
#include <thread>

#include "bootstrap/communicator_network.h"
#include "bootstrap/make_unique_id.h"
#include "bootstrap/random.h"
#include "bootstrap/rendezvous.h"
#include "harness/fork_alone.h"

namespace falcon::bootstrap {

inline std::shared_ptr<transport::Reactor> reactor() {
  return *transport::makeReactor(*SocketAddress::parse("127.0.0.1:0"));
}

/// The rendezvous that this process opened; a failed one waits for late ranks, and keeps its reactor's thread.
inline std::vector<std::pair<std::weak_ptr<transport::Reactor>, std::uint64_t>>& openedRendezvous() {
  static std::vector<std::pair<std::weak_ptr<transport::Reactor>, std::uint64_t>> all;
  return all;
}
inline void endAllRendezvous() {
  for (const auto& [host, key] : std::exchange(openedRendezvous(), {}))
    if (const auto alive = host.lock()) alive->forget(transport::Purpose::rendezvous, key);
}

/// An id whose rendezvous runs on `host`.
inline UniqueId idOn(const std::shared_ptr<transport::Reactor>& host) {
  const UniqueId id{host->address(), *randomNumber(), *randomSecret()};
  Rendezvous::open(host, id, 60s);
  openedRendezvous().emplace_back(host, id.key);
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
inline bool eventually(const std::function<bool()>& condition, Nanoseconds limit = 60s) {
  const auto deadline = std::chrono::steady_clock::now() + limit;
  while (!condition()) {
    if (std::chrono::steady_clock::now() >= deadline) return false;
    std::this_thread::sleep_for(5ms);
  }
  return true;
}

/// An id that this process makes only after it has forked its ranks: its reactor's thread must not run before.
class LaterId {
 public:
  LaterId()
      : memory_(mmap(nullptr, sizeof(Contents), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0)),
        contents_(new (memory_) Contents{}) {}
  LaterId(const LaterId&) = delete;
  ~LaterId() { munmap(memory_, sizeof(Contents)); }

  /// The id's rendezvous runs on `host`.
  UniqueId publish(const std::shared_ptr<transport::Reactor>& host) {
    const UniqueId id = idOn(host);
    publish(id);
    return id;
  }
  void publish(const UniqueId& id) {
    contents_->bytes = id.bytes();
    contents_->there = true;
  }
  /// Waits for it.
  UniqueId get() const {
    while (!contents_->there) std::this_thread::sleep_for(1ms);
    return *UniqueId::parse(contents_->bytes);
  }

 private:
  struct Contents {
    std::atomic<bool> there;
    std::array<char, 128> bytes;
  };
  void* const memory_;
  Contents* const contents_;
};

/// A forked rank; killed at the end of its scope if it still runs.
class Process {
 public:
  /// `body` returns the exit code.
  explicit Process(const std::function<int()>& body) {
    endAllRendezvous();  // of the tests before
    id_ = test::forkAlone();
    if (id_ != 0) return;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    _exit(body());
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
  pid_t id_ = -1;
};

}  // namespace falcon::bootstrap
