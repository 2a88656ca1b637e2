#include "api/setup.h"

#include "api/process.h"
#include "base/log.h"
#include "base/parameters.h"
#include "bootstrap/arrivals.h"
#include "bootstrap/communicator_network.h"
#include "collectives/host_communicator.h"
#include "control/job.h"
#include "transport/reactor.h"
#include "vendor/engine_choice.h"
#include "vendor/vendor_communicator.h"

namespace falcon::api {
namespace {

using Network = std::shared_ptr<bootstrap::CommunicatorNetwork>;

Result<EngineKind> agreeOnEngine(bootstrap::CommunicatorNetwork& network, Nanoseconds limit) {
  const auto answers = network.allGather(Process::instance().offer().encode(), limit);
  if (!answers) return answers.error();
  std::vector<vendor::EngineOffer> offers;
  for (const std::string& bytes : *answers) {
    auto offer = vendor::EngineOffer::decode(bytes);
    if (!offer) return log::decided(offer.error());
    offers.push_back(std::move(*offer));
  }
  auto kind = vendor::chooseEngine(offers);
  if (!kind) return log::decided(kind.error());
  return kind;
}

void useDeviceOf(const JoinRequest& request) {
  const auto driver = Process::instance().driver();
  if (!driver) return;
  if (request.deviceContext) driver->makeCurrent(request.deviceContext);
  if (request.device >= 0 && !driver->useDevice(request.device))
    log::notice("CUDA device {} cannot be made current", request.device);
}

/// A CTA is a channel.
collectives::ChannelWish channelsOf(const Settings& settings) {
  const ncclConfig_t& values = settings.vendor.values;
  const auto given = [](int value) { return value == NCCL_CONFIG_UNDEF_INT ? 0 : value; };
  return {given(values.minCTAs), given(values.maxCTAs)};
}

collectives::HostCommunicator& hostPartOf(Engine& engine) {
  return engine.kind() == EngineKind::vendor ? static_cast<vendor::VendorCommunicator&>(engine).host()
                                             : static_cast<collectives::HostCommunicator&>(engine);
}

/// What Falcon may know of an engine. No host communicator to work with where the vendor's moves the data.
control::KnownCommunicator knownOf(Engine& engine, const std::string& name, const CallCounts& counts) {
  const bool onVendor = engine.kind() == EngineKind::vendor;
  auto& host = hostPartOf(engine);
  return {&engine, onVendor ? nullptr : &host, host.members(), host.network().secret(), name, &counts};
}

void startWith(ncclComm& communicator, std::unique_ptr<Engine> engine, std::shared_ptr<control::Job> job) {
  Engine& made = *engine;
  log::info("communicator {:016x}: rank {} of {}, {} engine", made.id(), made.rank(), made.size(),
            made.kind() == EngineKind::vendor ? "vendor" : "host");
  communicator.counts = std::make_unique<CallCounts>(made.size());
  const int place = job ? job->add(knownOf(made, communicator.settings.vendor.name, *communicator.counts)) : noPlace;
  communicator.start(std::move(engine), std::move(job), place);
}

instrument::Making shown(const std::shared_ptr<control::Job>& job, instrument::MakingKind kind, std::uint64_t key,
                         Rank rank, int size, const std::string& name) {
  if (!job || size == 1) return {};
  return job->making({kind, key, rank, size, name, SystemClock::instance().now()});
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

Status establish(ncclComm& communicator, const JoinRequest& request) {
  const Nanoseconds limit = parameters::initTimeout.value();
  useDeviceOf(request);
  auto reactor = transport::processReactor();
  if (!reactor) {
    if (request.size > 1) bootstrap::withdraw(request.id, request.rank, request.size, reactor.error());
    return reactor.error();
  }
  // Before the others are met: who waits for them in vain is to be seen from outside.
  auto job = control::Job::acquire(*reactor, fmt::format("{:016x}", request.id.key));
  instrument::Making making = shown(job, instrument::MakingKind::init, request.id.key, request.rank, request.size,
                                    communicator.settings.vendor.name);
  Network network;
  if (request.size == 1) {
    (*reactor)->forget(transport::Purpose::rendezvous, request.id.key);  // nobody else will come
    auto alone = bootstrap::aloneNetwork(request.id.key);
    if (!alone) return alone.error();
    network = std::move(*alone);
  } else {
    const auto givenUp = [&] {
      if (job) making.arrived(bootstrap::Arrivals::at(request.id.key));
      return communicator.aborted.load(std::memory_order_relaxed);
    };
    auto joined =
        bootstrap::join(*reactor, request.id, request.rank, request.size, limit, givenUp, [&making] { making.met(); });
    if (!joined) return joined.error();
    network = std::move(*joined);
  }
  const auto kind = agreeOnEngine(*network, limit);
  if (!kind) return kind.error();

  EngineHooks hooks = job ? job->hooks() : EngineHooks();
  hooks.calls = nullptr;  // recorded here (dispatch.cc), alike for both engines
  auto host =
      collectives::HostCommunicator::create(*reactor, network, std::max(request.device, 0), hooks,
                                            job ? job->contact() : std::string(), channelsOf(communicator.settings));
  if (!host) return host.error();
  if (*kind == EngineKind::host) {
    startWith(communicator, std::move(*host), std::move(job));
    return {};
  }
  auto engine = vendor::VendorCommunicator::create(Process::instance().vendorLibrary(), Process::instance().driver(),
                                                   std::move(*host), communicator.settings.vendor, limit,
                                                   job ? &job->launchedWork() : nullptr);
  if (!engine) return engine.error();
  startWith(communicator, std::move(*engine), std::move(job));
  return {};
}

Status establishSplit(ncclComm& parent, ncclComm& child, int color, int key) {
  const auto making = shown(parent.job, instrument::MakingKind::split, parent.engine->id(), parent.engine->rank(),
                            parent.engine->size(), child.settings.vendor.name);
  auto engine = parent.engine->split(color, key);
  if (!engine) return engine.error();
  if (*engine) startWith(child, std::move(*engine), parent.job);
  return {};
}

collectives::HostCommunicator& hostPartOf(const ncclComm& communicator) {
  return hostPartOf(*communicator.engine);
}

Status establishGrown(ncclComm& parent, ncclComm& child, int size, const std::string& id) {
  constexpr const char* function = "ncclCommGrow";
  const auto ids = hostPartOf(parent).network().allGather(id, parameters::initTimeout.value());
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

Status establishShrunk(ncclComm& parent, ncclComm& child, std::span<const Rank> excluded, bool despiteFailure) {
  const auto making = shown(parent.job, instrument::MakingKind::shrink, parent.engine->id(), parent.engine->rank(),
                            parent.engine->size(), child.settings.vendor.name);
  auto engine = parent.engine->shrink(excluded, despiteFailure);
  if (!engine) return engine.error();
  startWith(child, std::move(*engine), parent.job);
  return {};
}

}  // namespace falcon::api
