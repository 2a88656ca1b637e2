#include "gpu/engine_choice.h"

#include "base/wire.h"

namespace falcon::gpu {

std::string EngineOffer::encode() const {
  return WireWriter()
      .put(version)
      .put(wish)
      .put(static_cast<std::uint8_t>(vendorWorks))
      .put(std::string_view(obstacle))
      .put(static_cast<std::uint8_t>(watches))
      .take();
}

Result<EngineOffer> EngineOffer::decode(std::string_view bytes) {
  WireReader reader(bytes);
  EngineOffer offer;
  offer.version = reader.get<int>();
  const auto wish = reader.get<std::uint8_t>();
  offer.vendorWorks = reader.get<std::uint8_t>() != 0;
  offer.obstacle = reader.getString();
  offer.watches = reader.get<std::uint8_t>() != 0;
  if (!reader.finished() || wish > static_cast<std::uint8_t>(EngineWish::vendor))
    return Error::invalidUsage(
        "a member of the communicator runs another version of NCCL Falcon (its engine offer is unreadable)");
  offer.wish = static_cast<EngineWish>(wish);
  return offer;
}

Result<EngineKind> chooseEngine(std::span<const EngineOffer> offers) {
  int wantsHost = -1, wantsVendor = -1, cannot = -1;
  for (size_t rank = 0; rank < offers.size(); ++rank) {
    const EngineOffer& offer = offers[rank];
    if (offer.version != offers[0].version)
      return Error::invalidUsage("rank 0 has library version {} and rank {} has {}: use the same on all ranks",
                                 offers[0].version, rank, offer.version);
    if (offer.wish == EngineWish::host && wantsHost < 0) wantsHost = static_cast<int>(rank);
    if (offer.wish == EngineWish::vendor && wantsVendor < 0) wantsVendor = static_cast<int>(rank);
    if (!offer.vendorWorks && cannot < 0) cannot = static_cast<int>(rank);
  }
  if (wantsHost >= 0 && wantsVendor >= 0)
    return Error::invalidUsage("NCCL_FALCON_ENGINE is host on rank {} and vendor on rank {}: set the same on all ranks",
                               wantsHost, wantsVendor);
  if (wantsVendor >= 0 && cannot >= 0)
    return Error::invalidUsage(
        "NCCL_FALCON_ENGINE=vendor on rank {}, but rank {} cannot: {}", wantsVendor, cannot,
        offers[cannot].obstacle.empty() ? "no usable device or vendor library" : offers[cannot].obstacle);
  return wantsHost < 0 && cannot < 0 ? EngineKind::vendor : EngineKind::host;
}

}  // namespace falcon::gpu
