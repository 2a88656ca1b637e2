// A port of the loopback interface that is nobody else's.
#pragma once

#include <arpa/inet.h>
#include <sys/socket.h>
#include <unistd.h>

#include <string>

namespace falcon::test {

/// As long as this lives the kernel gives the port to nobody who asks for any. Who asks for this one, and allows to
/// share it (SO_REUSEADDR), as all do that open a rendezvous, can listen there: here nobody listens.
class ReservedPort {
 public:
  ReservedPort() : socket_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    const int on = 1;
    setsockopt(socket_, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    sockaddr_in name{};
    name.sin_family = AF_INET;
    name.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t length = sizeof name;
    auto* const address = reinterpret_cast<sockaddr*>(&name);
    if (bind(socket_, address, length) == 0 && getsockname(socket_, address, &length) == 0)
      number_ = ntohs(name.sin_port);
  }
  ~ReservedPort() { close(socket_); }
  ReservedPort(const ReservedPort&) = delete;

  /// 0: there is none.
  int number() const { return number_; }
  std::string text() const { return "127.0.0.1:" + std::to_string(number_); }

 private:
  const int socket_;
  int number_ = 0;
};

}  // namespace falcon::test
