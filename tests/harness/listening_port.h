// A port of the loopback interface that somebody listens on, and answers nobody.
#pragma once

#include <arpa/inet.h>
#include <sys/socket.h>
#include <unistd.h>

#include <string>

namespace falcon::test {

/// After its end the port is one that nobody used a moment ago.
class ListeningPort {
 public:
  ListeningPort() : socket_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in name{};
    name.sin_family = AF_INET;
    name.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t length = sizeof name;
    auto* const address = reinterpret_cast<sockaddr*>(&name);
    if (bind(socket_, address, length) == 0 && listen(socket_, 8) == 0 && getsockname(socket_, address, &length) == 0)
      text_ = "127.0.0.1:" + std::to_string(ntohs(name.sin_port));
  }
  ~ListeningPort() { close(socket_); }
  ListeningPort(const ListeningPort&) = delete;

  /// Empty: there is none.
  const std::string& text() const { return text_; }

 private:
  const int socket_;
  std::string text_;
};

}  // namespace falcon::test
