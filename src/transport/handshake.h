// How two ends of a connection prove to each other that they know the secret, which itself never goes over the wire:
//
//   who comes    magic, purpose, key, nonce                      the opening
//   who is there magic, nonce, mac("there", opening, nonce)      the challenge, and the proof of who is there
//   who comes    length, mac("comes", both nonces, ...), from, payload
//
// A mac is HMAC-SHA-256 under the secret. It covers who says it, the purpose, the key and both fresh nonces, so that
// nothing said once is of use again, in the other direction, or for something else (docs/security.md).
//
// Each side's nonce is what makes the other's words fresh. So who has no random bytes for its own can still say that it
// cannot take part, and be believed: who comes withdraws (Hello::withdraws), with a nonce of zeros; who is there
// refuses, with mac("refuses", opening) in the place of its proof. It believes nothing itself, and nothing more is
// said.
#pragma once

#include <array>
#include <optional>
#include <string>

#include "base/sha256.h"
#include "transport/reactor.h"

namespace falcon::transport {

constexpr std::size_t maximumHelloPayload = 4096;
using Nonce = std::array<std::byte, 32>;

/// Takes what has come off a non-blocking socket, and not one byte more than is wanted.
class ExactReader {
 public:
  enum class Progress { incomplete, complete, ended };

  /// So many bytes in all; more can be wanted later.
  void want(std::size_t bytes) { wanted_ = bytes; }
  Progress read(int socket);
  const std::string& bytes() const { return bytes_; }
  void clear() { bytes_.clear(); }
  /// After `ended`: an error number; 0: the peer has hung up.
  int problem() const { return problem_; }

 private:
  std::string bytes_;
  std::size_t wanted_ = 0;
  int problem_ = 0;
};

/// The half of who comes. The socket is non-blocking; nothing here blocks. Used by one thread at a time.
class Greeting {
 public:
  enum class Progress {
    incomplete,  ///< wait until the socket is readable
    complete,    ///< both have proven themselves, and the peer knows who has come; what it sends next is the caller's
    turnedAway,  ///< it hung up before it had said anything: it has no use for us, now at least
    failed,      ///< see error(); invalidUsage: it does not know the secret
  };

  explicit Greeting(Hello hello) : hello_(std::move(hello)) {}

  /// Once the socket is connected, to `to`: the opening.
  Status open(int socket, const SocketAddress& to);
  Progress read(int socket);
  const Error& error() const { return *error_; }

 private:
  Progress failed(Error error);
  Progress takeChallenge(int socket);

  Hello hello_;
  SocketAddress to_;
  Nonce nonce_{};
  ExactReader reader_;
  std::optional<Error> error_;
};

/// The half of who is there.
class Challenge {
 public:
  enum class Progress {
    incomplete,
    opened,    ///< purpose() and key() are known: challenge() comes next, and nothing is to be read before
    complete,  ///< hello() has come from one that knows the secret
    stranger,  ///< see reason()
  };

  Challenge();
  /// `stranger` at the first byte that nothing of ours has there, and when the peer hangs up.
  Progress read(int socket);
  Purpose purpose() const { return hello_.purpose; }
  std::uint64_t key() const { return hello_.key; }
  /// Proves to the peer that we know `secret`, and asks it for the same. Without random bytes (error: system) it
  /// refuses it instead, so that the peer need not come again.
  Status challenge(int socket, const Secret& secret);
  const Hello& hello() const { return hello_; }
  const std::string& reason() const { return reason_; }

 private:
  enum class Stage { opening, opened, length, proof };

  Progress stranger(std::string reason);
  Progress takeOpening();
  Progress takeLength();
  Progress takeProof();

  Stage stage_ = Stage::opening;
  ExactReader reader_;
  Hello hello_;
  Nonce theirs_{}, ours_{};
  std::string reason_;
};

/// For tests: what who comes sends first, and then when challenged; and the bytes of a challenge and of a refusal.
std::string encodeOpening(Purpose purpose, std::uint64_t key, const Nonce& nonce);
std::string encodeProof(const Hello& hello, const Nonce& comes, const Nonce& there);
std::string encodeChallenge(const Hello& hello, const Nonce& comes, const Nonce& there);
std::string encodeRefusal(const Hello& hello, const Nonce& comes);

}  // namespace falcon::transport
