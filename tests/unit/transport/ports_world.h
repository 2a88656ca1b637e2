// Ranks for the tests of the ports: in threads of this process or in forked ones, over a medium of choice.
#pragma once

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <deque>
#include <functional>
#include <random>
#include <thread>

#include "base/wire.h"
#include "harness/fork_alone.h"
#include "transport/local_ports.h"

namespace falcon::transport::test {

inline const Secret testSecret{std::byte{7}, std::byte{9}};

/// Sets NCCL_BUFFSIZE so that chunks have that many bytes, and puts it back.
class ChunkBytes {
 public:
  explicit ChunkBytes(std::size_t bytes) { setenv("NCCL_BUFFSIZE", std::to_string(8 * bytes).c_str(), 1); }
  ~ChunkBytes() { unsetenv("NCCL_BUFFSIZE"); }
};

inline std::string mediumName(Medium medium) {
  return medium == Medium::self ? "self" : medium == Medium::sharedMemory ? "memory" : "socket";
}

inline std::string mediumOf(const testing::TestParamInfo<Medium>& medium) {
  return mediumName(medium.param);
}

inline SocketAddress loopback() {
  return *SocketAddress::parse("127.0.0.1:0");
}

/// What `rank` publishes; ranks reach each other over `medium` (self stands for shared memory between others).
inline Peer peerOf(Reactor& reactor, Rank rank, Medium medium) {
  Peer peer = *localPeer(reactor);
  peer.node = medium == Medium::socket ? "node" + std::to_string(rank) : "node";
  peer.jobRank = rank;
  return peer;
}

/// Ranks of one communicator in this process, each with a reactor of its own.
struct World {
  std::vector<std::shared_ptr<Reactor>> reactors;
  std::vector<Peer> peers;
  std::vector<std::unique_ptr<Ports>> ports;

  World(int size, Medium medium, CommunicatorId communicator = 42) {
    for (Rank rank = 0; rank < size; ++rank) {
      reactors.push_back(*makeReactor(loopback()));
      peers.push_back(peerOf(*reactors.back(), rank, medium));
    }
    for (Rank rank = 0; rank < size; ++rank)
      ports.push_back(std::move(*makeLocalPorts(reactors[rank], communicator, testSecret, rank, peers)));
  }
};

/// Calls `step` until it says true or fails, sleeping between; fails after `limit`.
inline Status until(Waiter& waiter, const std::function<Result<bool>()>& step,
                    const std::function<WaitSource()>& source, Nanoseconds limit = 30s) {
  const auto deadline = SystemClock::instance().now() + limit;
  while (SystemClock::instance().now() < deadline) {
    waiter.prepare();
    auto done = step();
    if (!done) return done.error();
    if (*done) return {};
    const WaitSource sources[] = {source()};
    waiter.wait(sources, 100ms);
  }
  return Error::internal("the test waited for {} s in vain", seconds(limit));
}

/// The byte at `offset` of the stream of chunk `number`.
inline std::byte patternByte(std::uint64_t stream, std::uint64_t number, std::size_t offset) {
  return static_cast<std::byte>(stream * 131 + number * 17 + offset * 7 + offset / 251);
}

/// Sizes of the chunks of a stream: the same on both ends; full, empty and odd ones.
inline std::vector<std::size_t> chunkSizes(std::uint64_t stream, int count, std::size_t chunkBytes) {
  std::mt19937_64 random(stream);
  std::vector<std::size_t> sizes;
  for (int i = 0; i < count; ++i) {
    const auto kind = random() % 5;
    const std::size_t least = std::min<std::size_t>(chunkBytes, (96 << 10) - 1 + random() % 3);  // around leastInPlace
    sizes.push_back(kind == 0 ? 0 : kind == 1 ? chunkBytes : kind == 2 ? least : random() % (chunkBytes + 1));
  }
  return sizes;
}

inline void fill(std::span<std::byte> chunk, std::uint64_t stream, std::uint64_t number) {
  for (std::size_t i = 0; i < chunk.size(); ++i) chunk[i] = patternByte(stream, number, i);
}
inline bool matches(std::span<const std::byte> chunk, std::uint64_t stream, std::uint64_t number) {
  for (std::size_t i = 0; i < chunk.size(); ++i)
    if (chunk[i] != patternByte(stream, number, i)) return false;
  return true;
}

/// Sends a whole stream; returns when all has left. Every second chunk is sent from where it lies, where the port does.
inline Status sendStream(Ports& ports, const PortKey& key, std::uint64_t stream, int count) {
  auto port = ports.openSend(key);
  if (!port) return port.error();
  SendPort& out = **port;
  const auto waiter = makeWaiter();
  std::uint64_t number = 0;
  std::deque<std::vector<std::byte>> lasting;
  const auto source = [&] { return out.waitSource(); };
  for (const std::size_t size : chunkSizes(stream, count, out.chunkBytes())) {
    const auto sent = until(
        *waiter,
        [&]() -> Result<bool> {
          auto moved = out.progress();
          if (!moved) return moved.error();
          auto chunk = out.acquire();
          if (!chunk) return chunk.error();
          if (chunk->empty()) return false;
          if (chunk->size() != out.chunkBytes()) return Error::internal("a slot of {} bytes", chunk->size());
          if (number % 2 == 1 && out.sendsInPlace(size)) {
            fill(lasting.emplace_back(size), stream, number++);
            out.commitFrom(lasting.back(), number % 3 == 0);
            return true;
          }
          fill(chunk->first(size), stream, number++);
          out.commit(size);
          return true;
        },
        source);
    if (!sent) return sent;
  }
  return until(
      *waiter,
      [&]() -> Result<bool> {
        auto moved = out.progress();
        if (!moved) return moved.error();
        return out.flushed();
      },
      source);
}

/// Receives a whole stream and compares it. Of three chunks one is taken as it comes, the others into place.
inline Status receiveStream(Ports& ports, const PortKey& key, std::uint64_t stream, int count) {
  auto port = ports.openReceive(key);
  if (!port) return port.error();
  ReceivePort& in = **port;
  const auto waiter = makeWaiter();
  std::uint64_t number = 0;
  for (const std::size_t size : chunkSizes(stream, count, in.chunkBytes())) {
    std::vector<std::byte> place(size);
    const auto look = [&] { return number % 3 == 0 ? in.ready() : in.readyInto(place); };
    const auto got = until(*waiter, look, [&] { return in.waitSource(); });
    if (!got) return got;
    if (in.chunk().size() != size)
      return Error::internal("chunk {} has {} bytes instead of {}", number, in.chunk().size(), size);
    if (!matches(in.chunk(), stream, number)) return Error::internal("chunk {} has wrong bytes", number);
    in.release();
    ++number;
  }
  return {};
}

inline testing::AssertionResult ok(const Status& status) {
  if (status) return testing::AssertionSuccess();
  return testing::AssertionFailure() << status.error().message();
}

/// What forked ranks share with the test.
struct Board {
  static constexpr std::size_t ranks = 16;
  struct Entry {
    std::atomic<bool> there;
    std::uint32_t length;
    char peer[1000];
    std::atomic<bool> flag;  ///< free for the test
    std::atomic<int> number;
  };
  std::array<Entry, ranks> entries;
};

/// Processes as ranks. `body(rank, ports, board)` runs in each; its status decides the process's exit code.
class ForkedWorld {
 public:
  using Body = std::function<Status(Rank, Ports&, Board&)>;

  ForkedWorld(int size, Medium medium, const Body& body)
      : board_(new (mmap(nullptr, sizeof(Board), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0)) Board{}) {
    for (Rank rank = 0; rank < size; ++rank) {
      const pid_t child = falcon::test::forkAlone();
      if (child == 0) {
        alarm(100);  // nobody stays behind
        _exit(runRank(rank, size, medium, body, *board_));
      }
      children.push_back(child);
    }
  }
  ~ForkedWorld() {
    for (std::size_t rank = 0; rank < children.size(); ++rank)
      if (children[rank] > 0) kill(children[rank], SIGKILL), wait(static_cast<Rank>(rank));
    munmap(board_, sizeof(Board));
  }

  Board& board() { return *board_; }
  /// The exit code, or 128 + signal.
  int wait(Rank rank) {
    int status = 0;
    waitpid(std::exchange(children[static_cast<std::size_t>(rank)], 0), &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }

  std::vector<pid_t> children;

 private:
  static int runRank(Rank rank, int size, Medium medium, const Body& body, Board& board) {
    auto reactor = makeReactor(loopback());
    if (!reactor) return 90;
    const Peer own = peerOf(**reactor, rank, medium);
    WireWriter out;
    out.put(own.address.text()).put(own.node).put(own.process).put(own.doorbell);
    auto& entry = board.entries[static_cast<std::size_t>(rank)];
    entry.length = static_cast<std::uint32_t>(out.bytes().size());
    std::memcpy(entry.peer, out.bytes().data(), out.bytes().size());
    entry.there = true;
    std::vector<Peer> peers;
    for (Rank other = 0; other < size; ++other) {
      auto& theirs = board.entries[static_cast<std::size_t>(other)];
      while (!theirs.there) std::this_thread::sleep_for(1ms);
      WireReader in({theirs.peer, theirs.length});
      Peer peer;
      peer.address = *SocketAddress::parse(in.getString());
      peer.node = in.getString();
      peer.process = in.get<std::uint64_t>();
      peer.doorbell = in.getString();
      peer.jobRank = other;
      peers.push_back(peer);
    }
    auto ports = makeLocalPorts(*reactor, 42, testSecret, rank, peers);
    if (!ports) return 91;
    const auto status = body(rank, **ports, board);
    if (!status) fprintf(stderr, "rank %d: %s\n", rank, status.error().message().c_str());
    return status ? 0 : 1;
  }

  Board* board_;
};

}  // namespace falcon::transport::test
