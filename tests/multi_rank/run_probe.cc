// What the tests of `falcon run` run as ranks.
//   run_probe lines COUNT               prints COUNT numbered lines in pieces that do not end where lines end
//   run_probe spin                      uses one core until it is killed
//   run_probe stream FILE PAIR...       pairs like 0-2: rank 0 sends to rank 2 over TCP for ever; the receiver adds
//   what
//                                       arrives to the counter of the pair in FILE (64 x 64 numbers)
//   run_probe send BYTES PAIR...        the same, but sends so many bytes and ends
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <string>
#include <thread>
#include <vector>

#include "run/placement.h"

namespace {

constexpr int mostRanks = 64;
using Counter = std::atomic<std::uint64_t>;

struct Pair {
  int from;
  int to;
  int port() const { return 7000 + from * mostRanks + to; }
};

sockaddr_in addressOf(int rank, int port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  inet_pton(AF_INET, falcon::tools::addressOf(rank).c_str(), &address.sin_addr);
  return address;
}

[[noreturn]] void fail(const char* what) {
  std::perror(what);
  std::_Exit(1);
}

void receive(Pair pair, std::uint64_t bytes, Counter* counter) {
  const int listener = ::socket(AF_INET, SOCK_STREAM, 0);
  const sockaddr_in own = addressOf(pair.to, pair.port());
  if (::bind(listener, reinterpret_cast<const sockaddr*>(&own), sizeof own) != 0 || ::listen(listener, 1) != 0)
    fail("listen");
  const int peer = ::accept(listener, nullptr, nullptr);
  std::vector<char> buffer(256 * 1024);
  for (std::uint64_t done = 0; done < bytes;) {
    const ssize_t count = ::read(peer, buffer.data(), buffer.size());
    if (count <= 0) fail("receive");
    done += static_cast<std::uint64_t>(count);
    if (counter) *counter += static_cast<std::uint64_t>(count);
  }
}

int connectTo(Pair pair) {
  for (int attempt = 0; attempt < 6000; ++attempt) {
    const int peer = ::socket(AF_INET, SOCK_STREAM, 0);
    const sockaddr_in own = addressOf(pair.from, 0);
    const sockaddr_in other = addressOf(pair.to, pair.port());
    if (::bind(peer, reinterpret_cast<const sockaddr*>(&own), sizeof own) != 0) fail("bind");
    if (::connect(peer, reinterpret_cast<const sockaddr*>(&other), sizeof other) == 0) return peer;
    ::close(peer);
    ::usleep(10'000);
  }
  fail("connect");
}

void send(Pair pair, std::uint64_t bytes) {
  const int peer = connectTo(pair);
  const std::vector<char> buffer(64 * 1024, 'x');
  for (std::uint64_t done = 0; done < bytes;) {
    const ssize_t count = ::write(peer, buffer.data(), std::min<std::uint64_t>(buffer.size(), bytes - done));
    if (count <= 0) fail("send");
    done += static_cast<std::uint64_t>(count);
    if (bytes == std::numeric_limits<std::uint64_t>::max()) ::usleep(200);  // leave the machine some time
  }
  ::shutdown(peer, SHUT_WR);
}

int exchange(int rank, std::uint64_t bytes, Counter* counters, const std::vector<std::string>& words) {
  std::vector<std::thread> threads;
  for (const auto& word : words) {
    Pair pair{};
    if (std::sscanf(word.c_str(), "%d-%d", &pair.from, &pair.to) != 2) return 2;
    if (pair.to == rank)
      threads.emplace_back(receive, pair, bytes, counters ? counters + pair.from * mostRanks + pair.to : nullptr);
    if (pair.from == rank) threads.emplace_back(send, pair, bytes);
  }
  for (auto& thread : threads) thread.join();
  return 0;
}

Counter* mapCounters(const char* path) {
  const size_t size = mostRanks * mostRanks * sizeof(Counter);
  const int file = ::open(path, O_RDWR);
  void* memory = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (file < 0 || memory == MAP_FAILED) fail(path);
  return static_cast<Counter*>(memory);
}

int printLines(int rank, int count) {
  std::string text;
  for (int line = 0; line < count; ++line)
    text += "rank " + std::to_string(rank) + " line " + std::to_string(line) + " " +
            std::string(static_cast<size_t>(line * 7 % 300), 'x') + "\n";
  text += "the end of " + std::to_string(rank);  // no newline
  for (size_t at = 0; at < text.size();) {
    const size_t piece = std::min<size_t>(1 + at * 31 % 997, text.size() - at);
    if (::write(STDOUT_FILENO, text.data() + at, piece) != static_cast<ssize_t>(piece)) return 1;
    at += piece;
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string what = argc > 1 ? argv[1] : "";
  const char* rankText = std::getenv("RANK");
  const int rank = rankText ? std::atoi(rankText) : 0;
  if (what == "lines" && argc == 3) return printLines(rank, std::atoi(argv[2]));
  if (what == "spin")
    for (std::atomic<std::uint64_t> turns{0};;) ++turns;
  const std::vector<std::string> pairs(argv + std::min(argc, 3), argv + argc);
  if (what == "stream") return exchange(rank, std::numeric_limits<std::uint64_t>::max(), mapCounters(argv[2]), pairs);
  if (what == "send") return exchange(rank, std::strtoull(argv[2], nullptr, 10), nullptr, pairs);
  std::fprintf(stderr, "run_probe: unknown: %s\n", what.c_str());
  return 2;
}
