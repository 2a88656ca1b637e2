#include "api/group.h"
#include "api/guard.h"
#include "api/process.h"
#include "api/setup.h"
#include "base/log.h"

namespace falcon::api {
namespace {

constexpr int mostRanks = 1 << 20;

}  // namespace

Status startRank(const char* function, ncclComm_t* output, int size, const ncclUniqueId& bytes, int rank,
                 const ncclConfig_t* config, int device) {
  if (const Status given = requireOutput(function, "comm", output); !given) return given;
  if (size < 1 || size > mostRanks)
    return log::decided(Error::invalidArgument("{}: nranks is {}, not 1 to {}", function, size, mostRanks));
  if (rank < 0 || rank >= size)
    return log::decided(Error::invalidArgument("{}: rank is {}, not 0 to {}", function, rank, size - 1));
  auto settings = readSettings(function, config);
  if (!settings) return settings.error();
  auto id = bootstrap::UniqueId::parse(bytes.internal);
  if (!id) return log::decided(id.error());
  Process::instance();

  auto* communicator = new ncclComm(std::move(*settings));
  const JoinRequest request{*id, size, rank, device, currentDeviceContext()};
  return Group::ofThisThread().setUp(
      function, {communicator, output, [communicator, request] { return establish(*communicator, request); }});
}

}  // namespace falcon::api
