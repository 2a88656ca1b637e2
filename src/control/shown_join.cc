#include "control/shown_join.h"

#include "base/parameters.h"
#include "bootstrap/arrivals.h"

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

}  // namespace falcon::control
