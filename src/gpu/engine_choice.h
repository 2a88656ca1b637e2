// Which engine a communicator gets: every member says what it wishes and can do; all decide the same from the answers.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "base/engine.h"
#include "base/result.h"

namespace falcon::gpu {

/// The words of NCCL_FALCON_ENGINE, in their order.
enum class EngineWish : std::uint8_t { automatic, host, vendor };

/// One member's answer.
struct EngineOffer {
  int version = 0;  ///< NCCL_VERSION_CODE of its library
  EngineWish wish = EngineWish::automatic;
  bool vendorWorks = false;  ///< a device is there and the vendor's library is loaded
  std::string obstacle;      ///< why not, where a person asked for it
  bool watches = false;      ///< Falcon is on there

  std::string encode() const;
  static Result<EngineOffer> decode(std::string_view bytes);
};

/// The vendor's engine where all members can use it and nobody objects; else the host engine. Offers are by rank.
/// Errors (invalidUsage, the same on all ranks): versions differ; wishes contradict each other; a wish cannot be
/// fulfilled.
Result<EngineKind> chooseEngine(std::span<const EngineOffer> offers);

}  // namespace falcon::gpu
