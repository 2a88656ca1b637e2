// How a Hello looks on the wire, and reading one from a socket that may belong to a stranger.
#pragma once

#include <optional>
#include <string>

#include "transport/reactor.h"

namespace falcon::transport {

constexpr std::size_t maximumHelloPayload = 4096;

/// The bytes that open a connection. The payload must not exceed maximumHelloPayload.
std::string encodeHello(const Hello& hello);

/// True if equal; takes the same time wherever they differ.
bool equalSecrets(const Secret& one, const Secret& other);

/// Takes a hello off a non-blocking socket, and not one byte more: what follows belongs to whom the hello names.
class HelloReader {
 public:
  enum class Progress { incomplete, complete, stranger };

  HelloReader();
  /// Reads what is there. `stranger` at the first byte that no hello of ours has there, and when the peer hangs up.
  Progress read(int socket);
  /// After `complete`.
  const Hello& hello() const { return *hello_; }
  /// After `stranger`: why.
  const std::string& reason() const { return reason_; }

 private:
  Progress stranger(std::string reason);
  Progress takeHeader();
  Progress takeBody();

  std::string bytes_;
  std::size_t wanted_;
  std::optional<Hello> hello_;
  std::string reason_;
};

}  // namespace falcon::transport
