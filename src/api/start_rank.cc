#include <cstring>
#include <functional>
#include <vector>

#include "api/group.h"
#include "api/guard.h"
#include "api/process.h"
#include "api/setup.h"
#include "api/setup_on_vendor.h"
#include "base/log.h"
#include "bootstrap/make_unique_id.h"

namespace falcon::api {
namespace {

constexpr int mostRanks = 1 << 20;

bool isOurs(const ncclUniqueId& id) {
  return bootstrap::UniqueId::isOne(id.internal);
}

/// What joins by an id of ours. Others that this process may have made hold rendezvous open that nobody will visit.
Result<std::function<Status(ncclComm&)>> joinByOurs(std::span<const ncclUniqueId> ids, int size, Rank rank,
                                                    int device) {
  const auto id = bootstrap::UniqueId::parse(ids[0].internal);
  if (!id) return id.error();
  for (const ncclUniqueId& each : ids.subspan(1)) {
    const auto unused = bootstrap::UniqueId::parse(each.internal);
    if (!unused) return unused.error();
    if (std::memcmp(&each, &ids[0], sizeof each) != 0) bootstrap::dropUniqueId(*unused);
  }
  const JoinRequest request{*id, size, rank, device, currentDeviceContext()};
  return std::function([request](ncclComm& communicator) { return establish(communicator, request); });
}

Result<std::function<Status(ncclComm&)>> joinByVendors(const char* function, std::span<const ncclUniqueId> ids,
                                                       int size, Rank rank, int device) {
  if (const Status fits = checkVendorsId(function, ids[0]); !fits) return fits.error();
  const std::vector<ncclUniqueId> list(ids.begin(), ids.end());
  return std::function([list, size, rank, device, context = currentDeviceContext()](ncclComm& communicator) {
    useDevice(device, context);
    return joinOnVendor(communicator, list, size, rank);
  });
}

Result<ncclUniqueId> asBytes(const Result<bootstrap::UniqueId>& made) {
  if (!made) return made.error();
  ncclUniqueId id;
  std::memcpy(id.internal, made->bytes().data(), sizeof id.internal);
  return id;
}

}  // namespace

Result<ncclUniqueId> newUniqueId() {
  Process& process = Process::instance();
  // Where all make it by themselves, what each knows of devices must not tell.
  if (const auto library = bootstrap::isRendezvousFixed() ? nullptr : process.likelyLibrary())
    return newVendorsId(*library);
  return asBytes(bootstrap::makeUniqueId());
}

Result<ncclUniqueId> newHostUniqueId() {
  Process::instance();
  auto made = bootstrap::makeUniqueId();
  if (made) made->hostMemory = true;
  return asBytes(made);
}

Result<ncclUniqueId> newUniqueIdOfProcess() {
  if (const auto library = Process::instance().deviceLibrary()) return newVendorsId(*library);
  return asBytes(bootstrap::makeOwnUniqueId());
}

Status startRank(const char* function, ncclComm_t* output, int size, std::span<const ncclUniqueId> ids, int rank,
                 const ncclConfig_t* config, int device) {
  if (const Status given = requireOutput(function, "comm", output); !given) return given;
  if (size < 1 || size > mostRanks)
    return log::decided(Error::invalidArgument("{}: nranks is {}, not 1 to {}", function, size, mostRanks));
  if (rank < 0 || rank >= size)
    return log::decided(Error::invalidArgument("{}: rank is {}, not 0 to {}", function, rank, size - 1));
  auto settings = readSettings(function, config);
  if (!settings) return settings.error();
  Process::instance();
  auto join = isOurs(ids[0]) ? joinByOurs(ids, size, rank, device) : joinByVendors(function, ids, size, rank, device);
  if (!join) return join.error();
  auto* communicator = new ncclComm(std::move(*settings));
  return Group::ofThisThread().setUp(
      function, {communicator, output, [communicator, join = std::move(*join)] { return join(*communicator); }});
}

}  // namespace falcon::api
