// What a rank takes in that others write into its windows over connections, from a peer that says it byte by byte.
#include "transport/window_inbox.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/socket.h>

#include <cstring>
#include <thread>
#include <vector>

namespace falcon::transport {
namespace {

using Outcome = WindowAnswer::Outcome;

constexpr Secret secret{std::byte{5}};
constexpr CommunicatorId communicator = 42;

/// Memory that can be taken away.
class Pages {
 public:
  explicit Pages(std::size_t bytes)
      : bytes_(bytes), at_(mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)) {}
  ~Pages() { takeAway(); }
  Pages(const Pages&) = delete;
  void takeAway() {
    if (at_) munmap(std::exchange(at_, nullptr), bytes_);
  }
  /// Nothing may be read or written there any more, and nothing else gets the place.
  void forbid() { mprotect(at_, bytes_, PROT_NONE); }
  char* get() const { return static_cast<char*>(at_); }
  std::size_t bytes() const { return bytes_; }
  /// Looks as another process would: the writing thread tells nobody how far it is.
  bool has(std::size_t offset, char wanted) const {
    const FileDescriptor memory(open("/proc/self/mem", O_RDONLY | O_CLOEXEC));
    char byte = 0;
    const auto at = static_cast<off_t>(reinterpret_cast<std::uintptr_t>(get()) + offset);
    return pread(memory.get(), &byte, 1, at) == 1 && byte == wanted;
  }

 private:
  const std::size_t bytes_;
  void* at_;
};

/// Rank 0's windows, and rank 1 that writes there.
struct WindowsOfARank : testing::Test {
  WindowsOfARank() {
    auto socket =
        connectWithHello({}, reactor->address(), {Purpose::window, windowKey(communicator, 0), secret, 1, {}}, 20s);
    EXPECT_TRUE(socket) << socket.error().message();
    writer = std::move(*socket);
  }
  void say(const void* bytes, std::size_t count) const {
    for (std::size_t sent = 0; sent < count;) {
      pollfd entry{writer.get(), POLLOUT, 0};
      ASSERT_EQ(poll(&entry, 1, 20'000), 1);
      const auto taken = send(writer.get(), static_cast<const char*>(bytes) + sent, count - sent, MSG_NOSIGNAL);
      ASSERT_GT(taken, 0);
      sent += static_cast<std::size_t>(taken);
    }
  }
  void begin(const WindowHeader& header) const { say(&header, sizeof header); }
  /// Nothing: the connection was closed.
  std::optional<WindowAnswer> answer() const {
    WindowAnswer answer;
    auto* const bytes = reinterpret_cast<char*>(&answer);
    for (std::size_t read = 0; read < sizeof answer;) {
      pollfd entry{writer.get(), POLLIN, 0};
      EXPECT_EQ(poll(&entry, 1, 20'000), 1) << "no answer comes";
      const auto got = recv(writer.get(), bytes + read, sizeof answer - read, 0);
      if (got <= 0) return std::nullopt;
      read += static_cast<std::size_t>(got);
    }
    return answer;
  }
  Outcome outcome() const {
    const auto got = answer();
    return got ? got->outcome : Outcome{};
  }
  void expectToWork() const {
    const auto before = inbox.signalsFrom(1, 3);
    begin({.kind = 3});
    EXPECT_EQ(outcome(), Outcome::done);
    EXPECT_EQ(inbox.signalsFrom(1, 3), before + 1);
  }

  const std::shared_ptr<Reactor> reactor = *makeReactor(*SocketAddress::parse("127.0.0.1:0"));
  WindowInbox inbox{reactor, communicator, secret, 0, 2};
  FileDescriptor writer;
};

TEST_F(WindowsOfARank, BytesComeWhereTheyBelongThenTheSignal) {
  std::vector<char> memory(3'000'000, 'x');
  inbox.openWindow(1, memory.data(), memory.size());
  const std::string data(2'000'000, 'd');
  begin({.kind = 5, .window = 1, .offset = 7, .bytes = data.size()});
  // Byte by byte at first, and then in pieces of any length.
  for (int i = 0; i < 5; ++i) say(&data[0], 1);
  EXPECT_EQ(inbox.signalsFrom(1, 5), 0u);
  say(data.data(), data.size() - 5);
  ASSERT_EQ(outcome(), Outcome::done);
  EXPECT_EQ(inbox.signalsFrom(1, 5), 1u);
  EXPECT_EQ(memory[6], 'x');
  EXPECT_EQ(std::string_view(memory.data() + 7, data.size()), data);
  EXPECT_EQ(memory[7 + data.size()], 'x');
}

// More of them than are taken in one turn, and none that comes after the last wakes anybody.
TEST_F(WindowsOfARank, ManyInOnePieceAreAllAnswered) {
  char memory[4] = {};
  inbox.openWindow(1, memory, sizeof memory);
  const WindowHeader header{.kind = 2, .window = 1, .bytes = 1};
  const std::string one = std::string(reinterpret_cast<const char*>(&header), sizeof header) + 'b';
  for (int count = 1; count <= 50; ++count) {
    std::string all;
    for (int i = 0; i < count; ++i) all += one;
    say(all.data(), all.size());
    for (int i = 0; i < count; ++i) ASSERT_EQ(outcome(), Outcome::done) << i << " of " << count;
  }
  EXPECT_EQ(inbox.signalsFrom(1, 2), 50u * 51 / 2);
}

TEST_F(WindowsOfARank, AWindowThatIsGivenBackInTheMiddleIsNotWrittenToAnyMore) {
  Pages pages(1 << 20);
  inbox.openWindow(1, pages.get(), pages.bytes());
  begin({.kind = 1, .window = 1, .bytes = pages.bytes()});
  const std::string half(pages.bytes() / 2, 'h');
  say(half.data(), half.size());
  while (!pages.has(half.size() - 1, 'h')) std::this_thread::sleep_for(1ms);
  inbox.closeWindow(1);
  pages.takeAway();
  Pages others(1 << 20);  // mostly where the first ones were
  say(half.data(), half.size());
  EXPECT_EQ(outcome(), Outcome::closed);
  EXPECT_EQ(inbox.signalsFrom(1, 1), 0u);
  for (std::size_t i = 0; i < others.bytes(); ++i) ASSERT_EQ(others.get()[i], 0);
  expectToWork();
}

TEST_F(WindowsOfARank, WhatIsNoMemoryIsSaidAndTheConnectionGoesOn) {
  Pages pages(1 << 20);
  inbox.openWindow(1, pages.get(), pages.bytes());
  pages.forbid();
  const std::string data(100'000, 'd');
  begin({.kind = 1, .window = 1, .bytes = data.size()});
  say(data.data(), data.size());
  EXPECT_EQ(outcome(), Outcome::unreadable);
  EXPECT_EQ(inbox.signalsFrom(1, 1), 0u);
  expectToWork();
}

TEST_F(WindowsOfARank, WhatDoesNotFitIsReadAndNotWritten) {
  std::vector<char> memory(100, 'x');
  inbox.openWindow(1, memory.data(), 50);
  for (const WindowHeader& header :
       {WindowHeader{.window = 1, .offset = 0, .bytes = 51}, WindowHeader{.window = 1, .offset = 50, .bytes = 1},
        WindowHeader{.window = 1, .offset = ~std::uint64_t{0}, .bytes = 2}}) {
    begin(header);
    const std::string data(header.bytes, 'd');
    say(data.data(), data.size());
    const auto got = answer();
    ASSERT_TRUE(got);
    EXPECT_EQ(got->outcome, Outcome::tooShort);
    EXPECT_EQ(got->windowBytes, 50u);
  }
  EXPECT_EQ(memory, std::vector<char>(100, 'x'));
  expectToWork();
}

struct WindowNonsense : WindowsOfARank, testing::WithParamInterface<WindowHeader> {};
INSTANTIATE_TEST_SUITE_P(Of, WindowNonsense,
                         testing::Values(WindowHeader{.magic = 1}, WindowHeader{.kind = signalKinds},
                                         WindowHeader{.window = 0, .bytes = 1}));

TEST_P(WindowNonsense, EndsTheConnection) {
  begin(GetParam());
  EXPECT_FALSE(answer());
}

TEST_F(WindowsOfARank, AMessageForAWindowToComeWaitsForIt) {
  char memory[4] = {};
  begin({.kind = 1, .window = 2, .bytes = 1});
  say("a", 1);
  inbox.openWindow(1, memory, 1);
  std::this_thread::sleep_for(20ms);
  EXPECT_EQ(inbox.signalsFrom(1, 1), 0u);
  inbox.openWindow(2, memory + 1, 1);
  EXPECT_EQ(outcome(), Outcome::done);
  EXPECT_EQ(memory[0], 0);
  EXPECT_EQ(memory[1], 'a');
}

TEST_F(WindowsOfARank, AMessageWithoutBytesForAWindowToComeWaitsForItToo) {
  char memory[1] = {};
  begin({.kind = 1, .window = 1, .bytes = 0});
  std::this_thread::sleep_for(20ms);
  EXPECT_EQ(inbox.signalsFrom(1, 1), 0u);
  inbox.openWindow(1, memory, 1);
  EXPECT_EQ(outcome(), Outcome::done);
  EXPECT_EQ(inbox.signalsFrom(1, 1), 1u);
}

}  // namespace
}  // namespace falcon::transport
