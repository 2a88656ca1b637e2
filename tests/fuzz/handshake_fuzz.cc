// Both halves of a handshake, against a peer that knows no secret.
#include <sys/socket.h>
#include <unistd.h>

#include "fuzz_target.h"
#include "transport/handshake.h"

namespace falcon::fuzz {
namespace {

using transport::Challenge;
using transport::Greeting;
using transport::Hello;
using transport::Purpose;

constexpr transport::Secret secret{std::byte{1}, std::byte{2}};

std::string visit(const std::string& payload) {
  const Hello hello{Purpose::rendezvous, 77, {}, 3, payload};
  return '\0' + transport::encodeOpening(hello.purpose, hello.key, {}) + transport::encodeProof(hello, {}, {});
}

void come(std::string_view input, int there) {
  Challenge challenge;
  auto progress = challenge.read(there);
  if (progress == Challenge::Progress::opened) {
    require(input.size() >= 49, "an opening has a length");
    require(static_cast<bool>(challenge.challenge(there, secret)), "it can be challenged");
    progress = challenge.read(there);
  }
  require(progress != Challenge::Progress::complete, "nobody is let in who does not know the secret");
  if (progress == Challenge::Progress::stranger) require(!challenge.reason().empty(), "it is refused with a reason");
}

void answer(int there) {
  Greeting greeting({Purpose::rendezvous, 77, secret, 3, "who comes"});
  require(static_cast<bool>(greeting.open(there, *SocketAddress::parse("127.0.0.1:1"))), "an opening can be said");
  const auto progress = greeting.read(there);
  require(progress != Greeting::Progress::complete, "nobody is believed who does not know the secret");
  if (progress == Greeting::Progress::failed) require(!greeting.error().message().empty(), "it says why");
}

}  // namespace

std::vector<std::string> seeds() {
  return {visit(""),
          visit("payload"),
          visit(std::string(transport::maximumHelloPayload, 'x')),
          visit("a") + "what follows",
          std::string("\0GET / HTTP/1.1\r\n\r\n", 19),
          '\1' + transport::encodeChallenge({Purpose::rendezvous, 77, {}, 3, {}}, {}, {}),
          '\1' + transport::encodeRefusal({Purpose::rendezvous, 77, {}, 3, {}}, {}),
          "\1HTTP/1.1 200"};
}

void run(std::string_view input) {
  if (input.empty()) return;
  int ends[2];
  require(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends) == 0, "there are sockets");
  const std::string_view bytes = input.substr(1);
  if (bytes.empty() || write(ends[0], bytes.data(), bytes.size()) == static_cast<ssize_t>(bytes.size())) {
    if (input[0] % 2 == 0)
      come(bytes, ends[1]);
    else
      answer(ends[1]);
  }
  close(ends[0]);
  close(ends[1]);
}

}  // namespace falcon::fuzz
