#include "api/setup.h"

#include "api/process.h"
#include "api/setup_on_vendor.h"
#include "base/log.h"
#include "base/parameters.h"
#include "bootstrap/communicator_network.h"
#include "collectives/host_communicator.h"
#include "control/job.h"
#include "control/shown_join.h"
#include "gpu/engine_choice.h"
#include "transport/reactor.h"

namespace falcon::api {
namespace {

using Network = std::shared_ptr<bootstrap::CommunicatorNetwork>;

/// What the members of a communicator have said together.
struct Agreement {
  EngineKind engine = EngineKind::host;
  bool anybodyWatches = false;  ///< Falcon is on somewhere
};
/// @param hostMemory  by the id: nobody looks for devices
Result<Agreement> agree(bootstrap::CommunicatorNetwork& network, bool watches, bool hostMemory, Nanoseconds limit) {
  gpu::EngineOffer mine =
      hostMemory ? gpu::EngineOffer{NCCL_VERSION_CODE, gpu::EngineWish::host, false, {}} : Process::instance().offer();
  mine.watches = watches;
  const auto answers = network.allGather(mine.encode(), limit);
  if (!answers) return answers.error();
  std::vector<gpu::EngineOffer> offers;
  Agreement agreement;
  for (const std::string& bytes : *answers) {
    auto offer = gpu::EngineOffer::decode(bytes);
    if (!offer) return log::decided(offer.error());
    agreement.anybodyWatches = agreement.anybodyWatches || offer->watches;
    offers.push_back(std::move(*offer));
  }
  const auto kind = gpu::chooseEngine(offers);
  if (!kind) return log::decided(kind.error());
  agreement.engine = *kind;
  return agreement;
}

void startOnHost(ncclComm& communicator, std::unique_ptr<collectives::HostCommunicator> made,
                 std::shared_ptr<control::Job> job) {
  collectives::HostCommunicator& host = *made;
  communicator.host = &host;
  communicator.engine = std::move(made);
  log::info("communicator {:016x}: rank {} of {}, host engine", host.id(), host.rank(), host.size());
  communicator.counts = std::make_unique<CallCounts>(host.size());
  const int place = job ? job->add({&host, &host, host.members(), host.network().secret(),
                                    communicator.settings.vendor.name, communicator.counts.get()})
                        : noPlace;
  communicator.start(std::move(job), place);
}

instrument::Making shown(const std::shared_ptr<control::Job>& job, instrument::MakingKind kind, std::uint64_t key,
                         Rank rank, int size, const std::string& name) {
  if (!job || size == 1) return {};
  return job->making({kind, key, rank, size, name, SystemClock::instance().now()});
}

/// The same for what is made of another one.
instrument::Making shownOf(const ncclComm& parent, instrument::MakingKind kind, const ncclComm& child) {
  return shown(parent.job, kind, parent.engine->id(), parent.engine->rank(), parent.engine->size(),
               child.settings.vendor.name);
}

}  // namespace

void* currentDeviceContext() {
  const auto driver = Process::instance().driver();
  return driver ? driver->currentContext() : nullptr;
}

void makeContextCurrent(void* context) {
  if (!context) return;
  if (const auto driver = Process::instance().driver()) driver->makeCurrent(context);
}

void useDevice(int device, void* context) {
  const auto driver = Process::instance().driver();
  if (!driver) return;
  if (context) driver->makeCurrent(context);
  if (device >= 0 && !driver->useDevice(device)) log::notice("CUDA device {} cannot be made current", device);
}

Status establish(ncclComm& communicator, const JoinRequest& request) {
  const Nanoseconds limit = parameters::initTimeout.value();
  useDevice(request.device, request.deviceContext);
  auto reactor = transport::processReactor();
  if (!reactor) {
    if (request.size > 1) bootstrap::withdraw(request.id, request.rank, request.size, reactor.error());
    return reactor.error();
  }
  // Before the others are met: who waits for them in vain is to be seen from outside.
  auto job =
      Process::instance().watches() ? control::Job::acquire(*reactor, fmt::format("{:016x}", request.id.key)) : nullptr;
  instrument::Making making = shown(job, instrument::MakingKind::init, request.id.key, request.rank, request.size,
                                    communicator.settings.vendor.name);
  auto joined = control::joinShown(*reactor, request.id, request.rank, request.size, making,
                                   [&] { return communicator.aborted.load(std::memory_order_relaxed); });
  if (!joined) return joined.error();
  Network network = std::move(*joined);
  const auto agreement = agree(*network, job != nullptr, request.id.hostMemory, limit);
  if (!agreement) return agreement.error();
  if (agreement->engine == EngineKind::vendor)
    return establishOnVendor(communicator, std::move(network), std::move(job), agreement->anybodyWatches);

  EngineHooks hooks = job ? job->hooks() : EngineHooks();
  hooks.calls = nullptr;  // recorded here (dispatch.cc), alike for both engines
  auto host = collectives::HostCommunicator::create(*reactor, network, std::max(request.device, 0), hooks,
                                                    job ? job->contact() : std::string(), communicator.settings.wish());
  if (!host) return host.error();
  startOnHost(communicator, std::move(*host), std::move(job));
  return {};
}

Status establishSplit(ncclComm& parent, ncclComm& child, int color, int key) {
  const auto making = shownOf(parent, instrument::MakingKind::split, child);
  if (parent.vendors) return splitOnVendor(parent, child, color, key);
  auto made = parent.host->split(color, key, child.settings.wish());
  if (!made) return made.error();
  if (*made) startOnHost(child, std::move(*made), parent.job);
  return {};
}

Status establishShrunk(ncclComm& parent, ncclComm& child, std::span<const Rank> excluded, bool despiteFailure) {
  const auto making = shownOf(parent, instrument::MakingKind::shrink, child);
  if (parent.vendors) return shrinkOnVendor(parent, child, excluded, despiteFailure);
  auto made = parent.host->shrink(excluded, despiteFailure, child.settings.wish());
  if (!made) return made.error();
  startOnHost(child, std::move(*made), parent.job);
  return {};
}

Status establishGrown(ncclComm& parent, ncclComm& child, int size, const std::string& id) {
  constexpr const char* function = "ncclCommGrow";
  const auto ids = parent.host->network().allGather(id, parameters::initTimeout.value());
  if (!ids) return ids.error();
  std::string chosen;
  for (const std::string& each : *ids) {
    if (each.empty() || each == chosen) continue;
    if (!chosen.empty()) return log::decided(Error::invalidUsage("{}: two ranks gave different ids", function));
    chosen = each;
  }
  if (chosen.size() != NCCL_UNIQUE_ID_BYTES)
    return log::decided(Error::invalidUsage(
        "{}: no rank of comm gave an id: one calls ncclCommGetUniqueId, and passes it here and to who joins",
        function));
  const auto parsed = bootstrap::UniqueId::parse(std::span<const char, NCCL_UNIQUE_ID_BYTES>(chosen));
  if (!parsed) return parsed.error();
  return establish(child, {*parsed, size, parent.engine->rank(), parent.engine->device(), currentDeviceContext()});
}

}  // namespace falcon::api
