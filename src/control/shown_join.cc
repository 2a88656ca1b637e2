#include "control/shown_join.h"

#include <span>
#include <string>

#include "base/parameters.h"
#include "bootstrap/arrivals.h"
#include "nccl.h"

namespace falcon::control {

Result<std::shared_ptr<bootstrap::CommunicatorNetwork>> joinShown(const std::shared_ptr<transport::Reactor>& reactor,
                                                                  const bootstrap::UniqueId& id, Rank rank, int size,
                                                                  instrument::Making& making,
                                                                  const std::function<bool()>& givenUp) {
  const auto asked = [&] {
    if (making.isShown()) making.arrived(bootstrap::Arrivals::at(id.key));
    return givenUp();
  };
  return bootstrap::join(reactor, id, rank, size, parameters::initTimeout.value(), asked, [&] { making.met(); });
}

Result<bootstrap::UniqueId> agreedId(bootstrap::CommunicatorNetwork& network,
                                     const std::optional<bootstrap::UniqueId>& mine,
                                     const bootstrap::GivenUp& givenUp) {
  std::string bytes;
  if (mine) {
    const auto own = mine->bytes();
    bytes.assign(own.begin(), own.end());
  }
  const auto all = network.allGather(bytes, parameters::initTimeout.value(), givenUp);
  if (!all) return all.error();
  for (const std::string& each : *all)
    if (each.size() == NCCL_UNIQUE_ID_BYTES)
      return bootstrap::UniqueId::parse(std::span<const char, NCCL_UNIQUE_ID_BYTES>(each));
  return Error::invalidUsage("none of the ranks that grow has the id that Falcon has made for those who join");
}

}  // namespace falcon::control
