#include "transport/hello.h"

#include <sys/socket.h>

#include <cerrno>
#include <cstring>

#include "base/wire.h"

namespace falcon::transport {
namespace {

// Eight bytes that no text protocol begins with; the last one is the version.
constexpr std::string_view magic(
    "\x89"
    "FALCON\x01",
    8);
constexpr std::size_t headerBytes = magic.size() + sizeof(std::uint32_t);
constexpr std::size_t fixedBodyBytes = 1 + 8 + 16 + 4 + 4;

}  // namespace

std::string encodeHello(const Hello& hello) {
  WireWriter body;
  body.put(hello.purpose).put(hello.key);
  for (const std::byte byte : hello.secret) body.put(byte);
  body.put(static_cast<std::int32_t>(hello.from)).put(std::string_view(hello.payload));
  WireWriter length;
  length.put(static_cast<std::uint32_t>(body.bytes().size()));
  return std::string(magic) + length.bytes() + body.bytes();
}

bool equalSecrets(const Secret& one, const Secret& other) {
  std::byte difference{0};
  for (std::size_t i = 0; i < one.size(); ++i) difference |= one[i] ^ other[i];
  return difference == std::byte{0};
}

HelloReader::HelloReader() : wanted_(headerBytes) {}

HelloReader::Progress HelloReader::read(int socket) {
  while (true) {
    char buffer[512];
    const auto length = std::min(sizeof buffer, wanted_ - bytes_.size());
    const auto got = recv(socket, buffer, length, MSG_DONTWAIT);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return Progress::incomplete;
    if (got < 0) return stranger(std::strerror(errno));
    if (got == 0) return stranger("it hung up before it had said who it is");
    bytes_.append(buffer, static_cast<std::size_t>(got));
    const auto progress = wanted_ == headerBytes ? takeHeader() : takeBody();
    if (progress != Progress::incomplete) return progress;
  }
}

HelloReader::Progress HelloReader::stranger(std::string reason) {
  reason_ = std::move(reason);
  return Progress::stranger;
}

HelloReader::Progress HelloReader::takeHeader() {
  const auto known = std::min(bytes_.size(), magic.size());
  if (std::string_view(bytes_).substr(0, known) != magic.substr(0, known))
    return stranger("it does not speak this library's protocol");
  if (bytes_.size() < headerBytes) return Progress::incomplete;
  const auto length = WireReader(std::string_view(bytes_).substr(magic.size())).get<std::uint32_t>();
  if (length < fixedBodyBytes || length > fixedBodyBytes + maximumHelloPayload)
    return stranger("its greeting has an impossible length");
  wanted_ = headerBytes + length;
  return Progress::incomplete;
}

HelloReader::Progress HelloReader::takeBody() {
  if (bytes_.size() < wanted_) return Progress::incomplete;
  WireReader reader(std::string_view(bytes_).substr(headerBytes));
  Hello hello;
  const auto purpose = reader.get<std::uint8_t>();
  hello.purpose = static_cast<Purpose>(purpose);
  hello.key = reader.get<std::uint64_t>();
  for (std::byte& byte : hello.secret) byte = reader.get<std::byte>();
  hello.from = reader.get<std::int32_t>();
  hello.payload = reader.getString();
  if (!reader.finished() || purpose > static_cast<std::uint8_t>(Purpose::pulse))
    return stranger("its greeting makes no sense");
  hello_ = std::move(hello);
  return Progress::complete;
}

}  // namespace falcon::transport
