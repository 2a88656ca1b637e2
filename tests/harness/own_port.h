// A port of the loopback interface that is this test's alone, also while nobody listens there.
#pragma once

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <string>

namespace falcon::test {

/// Below those that the kernel gives to whoever names none, so that nobody gets it by accident; and other tests know
/// whose it is by a name that they cannot have at the same time, which is free again when the process is gone.
class OwnPort {
 public:
  OwnPort() {
    int lowestGiven = 32768;
    std::ifstream("/proc/sys/net/ipv4/ip_local_port_range") >> lowestGiven;
    const int count = 8000, first = (lowestGiven > 20'000 ? lowestGiven : 32768) - count;
    for (int i = 0; i < count && text_.empty(); ++i) {
      const int port = first + (getpid() + i) % count;
      if (reserve(port) && isFree(port)) text_ = "127.0.0.1:" + std::to_string(port);
    }
    EXPECT_FALSE(text_.empty()) << "no port is free";
  }
  ~OwnPort() { release(); }
  OwnPort(const OwnPort&) = delete;

  const std::string& text() const { return text_; }

 private:
  bool reserve(int port) {
    release();
    name_ = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_un name{};
    name.sun_family = AF_UNIX;
    // With a zero before it this is no file.
    const std::string text = "falcon-test-port-" + std::to_string(port);
    std::memcpy(name.sun_path + 1, text.data(), text.size());
    const auto length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + text.size());
    return bind(name_, reinterpret_cast<const sockaddr*>(&name), length) == 0;
  }
  void release() const {
    if (name_ >= 0) close(name_);
  }
  static bool isFree(int port) {
    const int trial = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in name{};
    name.sin_family = AF_INET;
    name.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    name.sin_port = htons(static_cast<std::uint16_t>(port));
    const bool free = bind(trial, reinterpret_cast<const sockaddr*>(&name), sizeof name) == 0;
    close(trial);
    return free;
  }

  int name_ = -1;
  std::string text_;
};

}  // namespace falcon::test
