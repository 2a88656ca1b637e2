#include "transport/handshake.h"

#include <sys/socket.h>

#include <cerrno>
#include <cstring>

#include "base/random.h"
#include "base/system_error.h"
#include "base/wire.h"

namespace falcon::transport {
namespace {

// Eight bytes that no text protocol begins with; the last one is the version.
constexpr std::string_view magic(
    "\x89"
    "FALCON\x02",
    8);
constexpr std::size_t openingBytes = magic.size() + 1 + 8 + sizeof(Nonce);
constexpr std::size_t challengeBytes = magic.size() + sizeof(Nonce) + sizeof(Digest);
constexpr std::size_t lengthBytes = sizeof(std::uint32_t);
constexpr std::size_t leastProofBytes = sizeof(Digest) + 4 + 4;

std::string_view textOf(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

bool beginsAsOurs(std::string_view bytes) {
  const auto known = std::min(bytes.size(), magic.size());
  return bytes.substr(0, known) == magic.substr(0, known);
}

template <std::size_t size>
void copyTo(std::array<std::byte, size>& to, std::string_view from) {
  std::memcpy(to.data(), from.data(), size);
}

constexpr Nonce noNonce{};

Digest macOf(std::string_view who, const Hello& hello, const Nonce& comes, const Nonce& there, std::string_view more) {
  WireWriter message;
  message.put(std::string_view("falcon handshake")).put(magic).put(who).put(hello.purpose).put(hello.key);
  message.put(textOf(comes)).put(textOf(there)).put(more);
  return hmacSha256(hello.secret, message.bytes());
}

std::string bodyOf(const Hello& hello) {
  return WireWriter().put(static_cast<std::int32_t>(hello.from)).put(std::string_view(hello.payload)).take();
}

/// A fresh connection takes so few bytes at once.
bool sendAll(int socket, const std::string& bytes) {
  return send(socket, bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT) == static_cast<ssize_t>(bytes.size());
}

}  // namespace

std::string encodeOpening(Purpose purpose, std::uint64_t key, const Nonce& nonce) {
  return std::string(magic) + WireWriter().put(purpose).put(key).take() + std::string(textOf(nonce));
}

std::string encodeProof(const Hello& hello, const Nonce& comes, const Nonce& there) {
  const std::string body = bodyOf(hello);
  const Digest mac = macOf("comes", hello, comes, there, body);
  return WireWriter().put(static_cast<std::uint32_t>(mac.size() + body.size())).take() + std::string(textOf(mac)) +
         body;
}

std::string encodeChallenge(const Hello& hello, const Nonce& comes, const Nonce& there) {
  const Digest mac = macOf("there", hello, comes, there, {});
  return std::string(magic) + std::string(textOf(there)) + std::string(textOf(mac));
}

std::string encodeRefusal(const Hello& hello, const Nonce& comes) {
  const Digest mac = macOf("refuses", hello, comes, noNonce, {});
  return std::string(magic) + std::string(textOf(noNonce)) + std::string(textOf(mac));
}

ExactReader::Progress ExactReader::read(int socket) {
  char buffer[512];
  while (bytes_.size() < wanted_) {
    const auto got = recv(socket, buffer, std::min(sizeof buffer, wanted_ - bytes_.size()), MSG_DONTWAIT);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return Progress::incomplete;
    if (got <= 0) {
      problem_ = got < 0 ? errno : 0;
      return Progress::ended;
    }
    bytes_.append(buffer, static_cast<std::size_t>(got));
  }
  return Progress::complete;
}

Status Greeting::open(int socket, const SocketAddress& to) {
  to_ = to;
  if (hello_.payload.size() > maximumHelloPayload)
    return Error::internal("a greeting of {} bytes is too long", hello_.payload.size());
  if (!hello_.withdraws)
    if (const Status filled = fillRandom(nonce_); !filled) return filled.error();
  if (!sendAll(socket, encodeOpening(hello_.purpose, hello_.key, nonce_)))
    return Error::remote("cannot connect to {}: {}", to_.text(), reasonOf(errno));
  reader_.want(challengeBytes);
  return {};
}

Greeting::Progress Greeting::failed(Error error) {
  error_ = std::move(error);
  return Progress::failed;
}

Greeting::Progress Greeting::read(int socket) {
  const auto progress = reader_.read(socket);
  if (!beginsAsOurs(reader_.bytes()))
    return failed(Error::remote(
        "what listens at {} does not speak this library's protocol: is the address right, and the library the same?",
        to_.text()));
  if (progress == ExactReader::Progress::incomplete) return Progress::incomplete;
  if (progress == ExactReader::Progress::complete) return takeChallenge(socket);
  return reader_.bytes().empty() ? Progress::turnedAway
                                 : failed(Error::remote("{} hung up in the middle of its challenge", to_.text()));
}

Greeting::Progress Greeting::takeChallenge(int socket) {
  const std::string_view bytes = std::string_view(reader_.bytes()).substr(magic.size());
  Nonce theirs;
  Digest mac;
  copyTo(theirs, bytes);
  copyTo(mac, bytes.substr(theirs.size()));
  if (equalInConstantTime(mac, macOf("refuses", hello_, nonce_, noNonce, {})))
    return failed(Error::remote(
        "the process that listens at {} cannot prove itself, because its kernel gives it no random bytes", to_.text()));
  if (!equalInConstantTime(mac, macOf("there", hello_, nonce_, theirs, {})))
    return failed(
        Error::invalidUsage("what listens at {} does not know the secret of this job: another job, or a stranger, has "
                            "that port, or the two "
                            "have different secrets",
                            to_.text()));
  if (!sendAll(socket, encodeProof(hello_, nonce_, theirs)))
    return failed(Error::remote("{} hung up while it was told who comes: {}", to_.text(), reasonOf(errno)));
  return Progress::complete;
}

Challenge::Challenge() {
  reader_.want(openingBytes);
}

Challenge::Progress Challenge::stranger(std::string reason) {
  reason_ = std::move(reason);
  return Progress::stranger;
}

Challenge::Progress Challenge::read(int socket) {
  if (stage_ == Stage::opened) {
    char byte;
    const auto more = recv(socket, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
    if (more < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR)) return Progress::incomplete;
    return stranger(more > 0 ? "it goes on before it was asked to prove itself"
                             : "it hung up before anybody expected it");
  }
  while (true) {
    const auto progress = reader_.read(socket);
    if (stage_ == Stage::opening && !beginsAsOurs(reader_.bytes()))
      return stranger("it does not speak this library's protocol");
    if (progress == ExactReader::Progress::incomplete) return Progress::incomplete;
    if (progress == ExactReader::Progress::ended)
      return stranger(reader_.problem() != 0     ? std::strerror(reader_.problem())
                      : stage_ == Stage::opening ? "it hung up before it had said who it is"
                                                 : "it hung up when it was asked to prove itself: it does not know the "
                                                   "secret of this job, or has died");
    if (stage_ == Stage::opening) return takeOpening();
    if (stage_ == Stage::proof) return takeProof();
    if (const auto taken = takeLength(); taken != Progress::incomplete) return taken;
  }
}

Challenge::Progress Challenge::takeOpening() {
  const std::string_view bytes = reader_.bytes();
  WireReader reader(bytes.substr(magic.size()));
  const auto purpose = reader.get<std::uint8_t>();
  if (purpose > static_cast<std::uint8_t>(Purpose::window)) return stranger("its greeting makes no sense");
  hello_.purpose = static_cast<Purpose>(purpose);
  hello_.key = reader.get<std::uint64_t>();
  copyTo(theirs_, bytes.substr(bytes.size() - theirs_.size()));
  stage_ = Stage::opened;
  return Progress::opened;
}

Status Challenge::challenge(int socket, const Secret& secret) {
  hello_.secret = secret;
  if (const Status filled = fillRandom(ours_); !filled) {
    // Whether it hears that or not, there is nothing more to say to it.
    (void)sendAll(socket, encodeRefusal(hello_, theirs_));
    return filled.error();
  }
  if (!sendAll(socket, encodeChallenge(hello_, theirs_, ours_)))
    return Error::remote("it hung up when it was asked to prove itself: {}", reasonOf(errno));
  stage_ = Stage::length;
  reader_.clear();
  reader_.want(lengthBytes);
  return {};
}

Challenge::Progress Challenge::takeLength() {
  const auto length = WireReader(reader_.bytes()).get<std::uint32_t>();
  if (length < leastProofBytes || length > leastProofBytes + maximumHelloPayload)
    return stranger("its proof has an impossible length");
  stage_ = Stage::proof;
  reader_.want(lengthBytes + length);
  return Progress::incomplete;
}

Challenge::Progress Challenge::takeProof() {
  const std::string_view bytes = std::string_view(reader_.bytes()).substr(lengthBytes);
  Digest mac;
  copyTo(mac, bytes);
  const std::string_view body = bytes.substr(mac.size());
  if (!equalInConstantTime(mac, macOf("comes", hello_, theirs_, ours_, body)))
    return stranger("it does not know the secret of this job");
  WireReader reader(body);
  hello_.from = reader.get<std::int32_t>();
  hello_.payload = reader.getString();
  if (!reader.finished()) return stranger("its greeting makes no sense");
  return Progress::complete;
}

}  // namespace falcon::transport
