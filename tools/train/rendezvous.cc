#include "train/rendezvous.h"

#include <netdb.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace falcon::train {

namespace {

using Clock = std::chrono::steady_clock;
using namespace std::chrono_literals;

/// What a rank says first; strangers that find the port say something else and are dropped.
struct Hello {
  char magic[8] = {'f', 'a', 'l', 'c', 'o', 'n', 't', '1'};
  std::int32_t rank = 0;
  std::int32_t size = 0;
};

class Socket {
 public:
  explicit Socket(int descriptor = -1) : descriptor_(descriptor) {}
  ~Socket() {
    if (descriptor_ >= 0) ::close(descriptor_);
  }
  Socket(Socket&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)) {}
  Socket& operator=(Socket&&) = delete;
  int get() const { return descriptor_; }
  explicit operator bool() const { return descriptor_ >= 0; }

  void limitWaits(std::chrono::seconds limit) const {
    const timeval value{limit.count(), 0};
    ::setsockopt(descriptor_, SOL_SOCKET, SO_RCVTIMEO, &value, sizeof value);
    ::setsockopt(descriptor_, SOL_SOCKET, SO_SNDTIMEO, &value, sizeof value);
  }
  bool sendAll(const void* data, std::size_t size) const {
    return ::send(descriptor_, data, size, MSG_NOSIGNAL) == static_cast<ssize_t>(size);
  }
  bool receiveAll(void* data, std::size_t size) const {
    return ::recv(descriptor_, data, size, MSG_WAITALL) == static_cast<ssize_t>(size);
  }

 private:
  int descriptor_;
};

struct FreeAddresses {
  void operator()(addrinfo* list) const { ::freeaddrinfo(list); }
};
using Addresses = std::unique_ptr<addrinfo, FreeAddresses>;

std::string nameOf(const RankInJob& inJob) {
  return inJob.masterAddress + ":" + inJob.masterPort;
}

Addresses resolve(const RankInJob& inJob) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* list = nullptr;
  const int error = ::getaddrinfo(inJob.masterAddress.c_str(), inJob.masterPort.c_str(), &hints, &list);
  if (error != 0) throw std::runtime_error("cannot resolve " + nameOf(inJob) + ": " + ::gai_strerror(error));
  return Addresses(list);
}

Socket listenAt(const RankInJob& inJob) {
  const Addresses addresses = resolve(inJob);
  int reason = 0;
  for (const addrinfo* one = addresses.get(); one != nullptr; one = one->ai_next) {
    Socket socket(::socket(one->ai_family, one->ai_socktype | SOCK_CLOEXEC, one->ai_protocol));
    const int on = 1;
    if (socket) ::setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (socket && ::bind(socket.get(), one->ai_addr, one->ai_addrlen) == 0 && ::listen(socket.get(), 1024) == 0)
      return socket;
    reason = errno;
  }
  throw std::runtime_error("rank 0 cannot listen on MASTER_ADDR:MASTER_PORT " + nameOf(inJob) + ": " +
                           std::strerror(reason));
}

Socket connectTo(const RankInJob& inJob) {
  const Addresses addresses = resolve(inJob);
  for (const addrinfo* one = addresses.get(); one != nullptr; one = one->ai_next) {
    Socket socket(::socket(one->ai_family, one->ai_socktype | SOCK_CLOEXEC, one->ai_protocol));
    if (!socket) continue;
    socket.limitWaits(5s);  // SO_SNDTIMEO bounds connect() too
    if (::connect(socket.get(), one->ai_addr, one->ai_addrlen) == 0) return socket;
  }
  return Socket();
}

/// The rank that a peer says it is, or -1 for a stranger.
int readHello(const Socket& peer, const RankInJob& inJob) {
  const Hello expected;
  Hello hello;
  if (!peer.receiveAll(&hello, sizeof hello)) return -1;
  const bool ours = std::memcmp(hello.magic, expected.magic, sizeof hello.magic) == 0 && hello.size == inJob.size;
  return ours && hello.rank >= 1 && hello.rank < inJob.size ? hello.rank : -1;
}

void handOut(const RankInJob& inJob, std::span<const char> token, Clock::time_point deadline) {
  const Socket listener = listenAt(inJob);
  std::vector<bool> served(inJob.size);
  served[0] = true;
  for (;;) {
    const auto missing = std::find(served.begin(), served.end(), false);
    if (missing == served.end()) return;
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now());
    if (left <= 0ms)
      throw std::runtime_error("rank " + std::to_string(missing - served.begin()) + " did not come to " +
                               nameOf(inJob) + " in time");
    pollfd waiting{listener.get(), POLLIN, 0};
    if (::poll(&waiting, 1, static_cast<int>(left.count())) <= 0) continue;
    const Socket peer(::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
    if (!peer) continue;
    peer.limitWaits(2s);
    const int rank = readHello(peer, inJob);
    // A rank that lost its answer comes again.
    if (rank > 0 && peer.sendAll(token.data(), token.size())) served[rank] = true;
  }
}

void fetch(const RankInJob& inJob, std::span<char> token, Clock::time_point deadline) {
  Hello hello;
  hello.rank = inJob.rank;
  hello.size = inJob.size;
  for (;;) {
    const Socket master = connectTo(inJob);
    if (master && master.sendAll(&hello, sizeof hello)) {
      master.limitWaits(std::max(1s, std::chrono::duration_cast<std::chrono::seconds>(deadline - Clock::now())));
      if (master.receiveAll(token.data(), token.size())) return;
    }
    if (Clock::now() >= deadline)
      throw std::runtime_error("rank 0 cannot be reached at MASTER_ADDR:MASTER_PORT " + nameOf(inJob));
    std::this_thread::sleep_for(50ms);
  }
}

}  // namespace

void shareToken(const RankInJob& inJob, std::span<char> token, std::chrono::seconds limit) {
  if (inJob.size == 1) return;
  const auto deadline = Clock::now() + limit;
  if (inJob.rank == 0)
    handOut(inJob, token, deadline);
  else
    fetch(inJob, token, deadline);
}

}  // namespace falcon::train
