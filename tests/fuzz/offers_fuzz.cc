// What the ranks tell each other of themselves and of a connection that is to be made.
#include "collectives/member_info.h"
#include "fuzz_target.h"
#include "gpu/engine_choice.h"
#include "transport/connection_offer.h"

namespace falcon::fuzz {
namespace {

using collectives::MemberOffer;
using gpu::EngineOffer;
using transport::ConnectionOffer;

template <class Offer>
void tryAs(std::string_view bytes) {
  requireRoundTrip(bytes, Offer::decode, [](const Offer& offer) { return offer.encode(); });
}

MemberOffer someMember(const char* address) {
  MemberOffer offer;
  offer.info.peer = {*SocketAddress::parseNumeric(address), "node", 77, "doorbell", 3};
  offer.info.host = "host";
  offer.info.extra = "extra";
  offer.chunkBytes = 4096;
  offer.board = "board";
  return offer;
}

}  // namespace

// The first byte says which reader gets the rest.
std::vector<std::string> seeds() {
  return {'\0' + ConnectionOffer{2, transport::Lane::ring, 4096, "segment", "doorbell"}.encode(),
          '\1' + someMember("10.1.0.2:4000").encode(), '\1' + someMember("[::1]:4000").encode(),
          '\2' + EngineOffer{22809, gpu::EngineWish::host, true, "obstacle"}.encode()};
}

void run(std::string_view input) {
  if (input.empty()) return;
  const std::string_view bytes = input.substr(1);
  switch (static_cast<unsigned char>(input[0]) % 3) {
    case 0:
      return tryAs<ConnectionOffer>(bytes);
    case 1:
      return tryAs<MemberOffer>(bytes);
    default:
      return tryAs<EngineOffer>(bytes);
  }
}

}  // namespace falcon::fuzz
