#include "bootstrap/make_unique_id.h"

#include <algorithm>

#include "base/log.h"
#include "base/parameters.h"
#include "base/sha256.h"
#include "bootstrap/random.h"
#include "bootstrap/rendezvous.h"

namespace falcon::bootstrap {
namespace {

constexpr auto rendezvousLimit = 10min;
constexpr std::uint64_t seriesBits = 0xffff;  // of a fixed address' key

}  // namespace

UniqueId idOfFixedAddress(const SocketAddress& address, std::string_view secret, std::uint16_t series) {
  UniqueId id{address, (hashOf(std::string_view(address.text())) & ~seriesBits) | series, {}};
  // Without a secret this one keeps out only connections that went astray: it comes from a name that all know.
  const Digest digest = hmacSha256(std::as_bytes(std::span(secret)), fmt::format("NCCL_COMM_ID {}", address.text()));
  std::copy_n(digest.begin(), id.secret.size(), id.secret.begin());
  return id;
}

bool hasFixedAddress(const UniqueId& id) {
  return idOfFixedAddress(id.address, {}).key == (id.key & ~seriesBits);
}

bool isRendezvousFixed() {
  return parameters::commId.isSet() && !parameters::commId.value().empty();
}

Result<UniqueId> makeUniqueId() {
  if (isRendezvousFixed()) {
    const auto address = SocketAddress::parse(parameters::commId.value());
    if (!address) return log::decided(Error::invalidArgument("NCCL_COMM_ID: {}", address.error().message()));
    if (address->port() == 0)
      return log::decided(
          Error::invalidArgument("NCCL_COMM_ID={}: name the port that rank 0 opens, the same for all ranks; the others "
                                 "could not learn which one the system gives it for 0",
                                 parameters::commId.value()));
    return idOfFixedAddress(*address, parameters::secret.value());
  }
  return makeOwnUniqueId();
}

void dropUniqueId(const UniqueId& id) {
  if (auto reactor = transport::processReactor()) (*reactor)->forget(transport::Purpose::rendezvous, id.key);
}

Result<UniqueId> makeOwnUniqueId() {
  auto reactor = transport::processReactor();
  if (!reactor) return reactor.error();
  const auto key = randomNumber();
  if (!key) return log::decided(key.error());
  const auto secret = randomSecret();
  if (!secret) return log::decided(secret.error());
  const UniqueId id{(*reactor)->address(), *key, *secret};
  Rendezvous::open(*reactor, id, rendezvousLimit);
  return id;
}

}  // namespace falcon::bootstrap
