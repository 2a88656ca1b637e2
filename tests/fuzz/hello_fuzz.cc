// The first bytes on every connection, from whoever connects.
#include <sys/socket.h>
#include <unistd.h>

#include "fuzz_target.h"
#include "transport/hello.h"

namespace falcon::fuzz {
namespace {

using transport::Hello;
using transport::HelloReader;

std::string greeting(const std::string& payload) {
  return transport::encodeHello({transport::Purpose::rendezvous, 77, {}, 3, payload});
}

}  // namespace

std::vector<std::string> seeds() {
  return {greeting(""), greeting("payload"), greeting(std::string(transport::maximumHelloPayload, 'x')),
          greeting("a") + "what follows", "GET / HTTP/1.1\r\n\r\n"};
}

void run(std::string_view input) {
  int ends[2];
  require(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends) == 0, "there are sockets");
  HelloReader reader;
  auto progress = HelloReader::Progress::incomplete;
  // In two parts, cut where the input says, as networks do.
  const std::size_t cut = input.empty() ? 0 : static_cast<unsigned char>(input.back()) % (input.size() + 1);
  for (const std::string_view part : {input.substr(0, cut), input.substr(cut)}) {
    if (progress != HelloReader::Progress::incomplete) break;
    if (!part.empty() && write(ends[0], part.data(), part.size()) != static_cast<ssize_t>(part.size())) break;
    progress = reader.read(ends[1]);
  }
  close(ends[0]);
  if (progress == HelloReader::Progress::incomplete) progress = reader.read(ends[1]);
  require(progress != HelloReader::Progress::incomplete, "it ends with the connection");
  if (progress == HelloReader::Progress::complete) {
    const std::string written = encodeHello(reader.hello());
    require(input.substr(0, written.size()) == written, "a greeting is what came");
  } else {
    require(!reader.reason().empty(), "a stranger is refused with a reason");
  }
  close(ends[1]);
}

}  // namespace falcon::fuzz
