// Both ends of a connection, in one process.
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <cstring>
#include <thread>
#include <vector>

#include "core/network.h"

namespace falcon::net::test {

using Seconds = std::chrono::duration<double>;
using Bytes = std::vector<std::byte>;

inline Bytes patternOf(std::size_t size, unsigned seed) {
  Bytes bytes(size);
  for (std::size_t i = 0; i < size; ++i) bytes[i] = static_cast<std::byte>((i * 2654435761u + seed * 40503u) >> 13);
  return bytes;
}

/// Calls `ready` until it says true. False: it never did, which only hangs should bring about.
template <class Ready>
bool waitFor(const Ready& ready, Seconds limit = Seconds(40)) {
  const auto until = std::chrono::steady_clock::now() + limit;
  while (!ready()) {
    if (std::chrono::steady_clock::now() > until) return false;
    std::this_thread::yield();
  }
  return true;
}

class HandleBytes {
 public:
  Handle get() { return Handle(bytes_); }

 private:
  std::array<std::byte, transport::net::handleBytes> bytes_{};
};

/// Connects a sender and a receiver as NCCL does it: both are asked in turn. False: they have not met in time.
inline bool connectBoth(Network& over, int device, Handle handle, Listener& listener,
                        std::unique_ptr<Connection>& sender, std::unique_ptr<Connection>& receiver) {
  return waitFor([&] {
    if (!sender) {
      auto made = over.connect(device, handle);
      if (!made) throw std::runtime_error(made.error().message());
      sender = std::move(*made);
    }
    if (!receiver) {
      auto made = listener.accept();
      if (!made) throw std::runtime_error(made.error().message());
      receiver = std::move(*made);
    }
    return sender && receiver;
  });
}

/// A sender and a receiver that are connected.
struct Ends {
  explicit Ends(Network& over, int device = 0) : Ends(over, device, device) {}
  /// Of different devices.
  Ends(Network& over, int receiversDevice, int device) {
    auto listening = over.listen(receiversDevice, handle.get());
    if (!listening) throw std::runtime_error(listening.error().message());
    listener = std::move(*listening);
    const bool met = connectBoth(over, device, handle.get(), *listener, sender, receiver);
    if (!met) throw std::runtime_error("the ends have not met");
  }

  HandleBytes handle;
  std::unique_ptr<Listener> listener;
  std::unique_ptr<Connection> sender, receiver;
};

/// Connects as NCCL does, again and again, until that fails; `meanwhile` is called each time. Nothing: it never failed.
template <class Meanwhile>
std::optional<Error> whyNotConnected(Network& over, Handle handle, const Meanwhile& meanwhile) {
  std::optional<Error> error;
  EXPECT_TRUE(waitFor([&] {
    const auto made = over.connect(0, handle);
    if (!made) error = made.error();
    meanwhile();
    return error.has_value();
  }));
  return error;
}
inline std::optional<Error> whyNotConnected(Network& over, Handle handle) {
  return whyNotConnected(over, handle, [] {});
}

/// Memory that is registered at an end while it lives.
class Mark {
 public:
  Mark(Connection& end, Bytes& data) : end_(end) {
    auto made = end.registerMemory(data.data(), data.size(), transport::net::hostMemory);
    if (!made) throw std::runtime_error(made.error().message());
    mark_ = *made;
  }
  ~Mark() { end_.deregisterMemory(mark_); }
  Mark(const Mark&) = delete;
  void* get() const { return mark_; }

 private:
  Connection& end_;
  void* mark_ = nullptr;
};

/// A message of `size` bytes arrives whole, in a buffer that is longer. Both ends are asked in turn: the message may be
/// longer than what the kernel keeps.
inline void expectArrivesWhole(Ends& ends, std::size_t size, unsigned seed) {
  Bytes sent = patternOf(size, seed);
  Bytes received(size + 7);
  const Mark from(*ends.sender, sent), to(*ends.receiver, received);
  const auto receive = ends.receiver->start(received.data(), received.size(), to.get());
  ASSERT_TRUE(receive && *receive);
  const auto send = ends.sender->start(sent.data(), size, from.get());
  ASSERT_TRUE(send && *send);
  std::size_t sentBytes = 0, receivedBytes = 0;
  bool isSent = false, isReceived = false;
  ASSERT_TRUE(waitFor([&] {
    if (!isSent) isSent = *(*send)->test(sentBytes);
    if (!isReceived) isReceived = *(*receive)->test(receivedBytes);
    return isSent && isReceived;
  })) << size;
  EXPECT_EQ(sentBytes, size);
  EXPECT_EQ(receivedBytes, size);
  EXPECT_TRUE(std::equal(sent.begin(), sent.end(), received.begin())) << size;
}

/// What a request came to: the bytes, or the error.
inline Result<std::size_t> finish(Request* request, Seconds limit = Seconds(40)) {
  std::size_t bytes = 0;
  std::optional<Error> error;
  const bool done = waitFor(
      [&] {
        const auto tested = request->test(bytes);
        if (!tested) error = tested.error();
        return !tested || *tested;
      },
      limit);
  if (error) return *error;
  if (!done) return Error::internal("not done in {} s", limit.count());
  return bytes;
}

/// Sets variables of the environment while it lives.
class Setting {
 public:
  Setting(const char* name, const std::string& value) : name_(name) {
    if (const char* before = std::getenv(name)) before_ = before;
    setenv(name, value.c_str(), 1);
  }
  ~Setting() { before_ ? setenv(name_, before_->c_str(), 1) : unsetenv(name_); }
  Setting(const Setting&) = delete;

 private:
  const char* name_;
  std::optional<std::string> before_;
};

}  // namespace falcon::net::test
