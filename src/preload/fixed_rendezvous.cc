#include "preload/fixed_rendezvous.h"

#include <new>

#include "base/first_time.h"
#include "base/log.h"
#include "base/parameters.h"
#include "bootstrap/make_unique_id.h"
#include "bootstrap/random.h"

namespace falcon::preload {

std::optional<bootstrap::UniqueId> FixedRendezvous::next(Rank rank, int size) {
  const std::string place = parameters::falconCommId.value();
  const auto address = place.empty() ? Result(SocketAddress()) : SocketAddress::parse(place);
  const bool usable = address && address->port() != 0;
  if (!usable) {
    if (!firstTime(parameters::falconCommId.name())) return std::nullopt;
    if (place.empty())
      log::info(
          "communicators that are made by NCCL_COMM_ID are not watched: no unique id tells their ranks where Falcon's "
          "rendezvous is; NCCL_FALCON_COMM_ID=address:port, the same on all ranks, does");
    else
      log::notice("NCCL_FALCON_COMM_ID={}: {}; communicators that are made by NCCL_COMM_ID are not watched", place,
                  address ? "a port is missing that rank 0 can open" : address.error().message());
    return std::nullopt;
  }
  const std::lock_guard lock(mutex_);
  const std::uint64_t number = made_[{rank, size}]++;
  const auto series = static_cast<std::uint16_t>(bootstrap::hashOf({static_cast<std::uint64_t>(size), number}));
  return bootstrap::idOfFixedAddress(*address, parameters::secret.value(), series);
}

void FixedRendezvous::forgetAll() {
  new (&mutex_) std::mutex;  // it may have been locked in the parent
  new (&made_) std::map<std::pair<Rank, int>, std::uint64_t>;
}

}  // namespace falcon::preload
