// Stands before a listening address and turns the first who come away, as a process does whose doorway is full; those
// after them are let through.
#pragma once

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>

#include <atomic>
#include <map>
#include <thread>
#include <vector>

#include "base/owned.h"
#include "base/socket_address.h"

namespace falcon::test {

class Doorman {
 public:
  /// Turns `count` away once they have said something.
  Doorman(const SocketAddress& house, int count) : house_(house), left_(count) {
    const SocketAddress wanted = *SocketAddress::parse("127.0.0.1:0");
    EXPECT_EQ(bind(listener_.get(), wanted.get(), wanted.length()), 0);
    EXPECT_EQ(listen(listener_.get(), 64), 0);
    sockaddr_storage name{};
    socklen_t length = sizeof name;
    getsockname(listener_.get(), reinterpret_cast<sockaddr*>(&name), &length);
    address_ = SocketAddress(reinterpret_cast<sockaddr*>(&name), length);
    thread_ = std::thread([this] { work(); });
  }
  ~Doorman() {
    stop_ = true;
    thread_.join();
  }
  Doorman(const Doorman&) = delete;

  const SocketAddress& address() const { return address_; }
  /// How many it has yet to turn away.
  int left() const { return left_; }

 private:
  void work() {
    while (!stop_) {
      std::vector<pollfd> entries{{listener_.get(), POLLIN, 0}};
      for (const auto& [socket, other] : others_) entries.push_back({socket, POLLIN, 0});
      if (poll(entries.data(), entries.size(), 10) <= 0) continue;
      for (std::size_t i = 1; i < entries.size(); ++i)
        if (entries[i].revents != 0) pass(entries[i].fd);
      if (entries[0].revents != 0) admit();
    }
  }
  void admit() {
    FileDescriptor visitor(accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
    if (left_ > 0) {
      char byte;
      EXPECT_EQ(recv(visitor.get(), &byte, 1, 0), 1);
      --left_;
      return;
    }
    FileDescriptor inside(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    EXPECT_EQ(connect(inside.get(), house_.get(), house_.length()), 0);
    const int a = visitor.get(), b = inside.get();
    others_[a] = std::move(inside);
    others_[b] = std::move(visitor);
  }
  /// What has come over one end goes out at the other; where one is closed so is the other.
  void pass(int from) {
    const auto other = others_.find(from);
    if (other == others_.end()) return;
    char bytes[4096];
    const auto got = recv(from, bytes, sizeof bytes, MSG_DONTWAIT);
    if (got > 0 && send(other->second.get(), bytes, static_cast<std::size_t>(got), MSG_NOSIGNAL) == got) return;
    const int to = other->second.get();
    others_.erase(from);
    others_.erase(to);
  }

  const SocketAddress house_;
  std::atomic<int> left_;
  FileDescriptor listener_{socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};
  SocketAddress address_;
  std::map<int, FileDescriptor> others_;  // of each end the other one
  std::atomic<bool> stop_{false};
  std::thread thread_;
};

}  // namespace falcon::test
