#include "api/setup_on_vendor.h"

#include <atomic>
#include <cstring>

#include "api/meeting.h"
#include "api/process.h"
#include "base/log.h"
#include "base/parameters.h"
#include "bootstrap/random.h"
#include "bootstrap/unique_id.h"
#include "collectives/member_exchange.h"
#include "control/job.h"
#include "control/shown_join.h"
#include "control/step_agreement.h"
#include "gpu/unique_id_room.h"
#include "transport/reactor.h"

namespace falcon::api {
namespace {

using Network = std::shared_ptr<bootstrap::CommunicatorNetwork>;
using Vendors = std::unique_ptr<gpu::VendorCommunicator>;

void notWatched(const Error& why) {
  log::notice("a communicator is not watched: {}", why.message());
}

Result<ncclUniqueId> vendorsIdBy(const gpu::VendorLibrary& library) {
  ncclUniqueId id{};
  const Status made = library.status(library.functions.getUniqueId(&id), "ncclGetUniqueId", nullptr);
  if (!made) return log::decided(made.error());
  return id;
}

/// The job that a communicator with this way to meet is of. Null: Falcon is off, or has no network, which is said.
std::shared_ptr<control::Job> jobBy(const bootstrap::UniqueId& way) {
  auto reactor = transport::processReactor();
  if (reactor) return control::Job::acquire(*reactor, fmt::format("{:016x}", way.key));
  notWatched(reactor.error());
  return nullptr;
}

/// The vendor's rendezvous has an id of its own. Collective.
Result<ncclUniqueId> shareVendorsId(bootstrap::CommunicatorNetwork& network) {
  ncclUniqueId id{};
  std::string mine;
  if (network.rank() == 0) {
    // The others wait for an answer: an empty one tells them.
    if (const auto made = vendorsIdBy(*Process::instance().vendorLibrary()))
      mine.assign(made->internal, sizeof made->internal);
  }
  const auto ids = network.allGather(mine, parameters::initTimeout.value());
  if (!ids) return ids.error();
  if ((*ids)[0].size() != sizeof id.internal)
    return log::decided(Error::system("rank 0 could not start the rendezvous of the vendor's NCCL; its log says why"));
  std::memcpy(id.internal, (*ids)[0].data(), sizeof id.internal);
  return id;
}

/// `network`: null where nobody watches the communicator; else it says what Falcon calls it.
void startOnVendor(ncclComm& communicator, Vendors made, Network network, std::shared_ptr<control::Job> job) {
  gpu::VendorCommunicator& vendors = *made;
  if (network) vendors.nameIt(network->id());
  communicator.vendors = &vendors;
  communicator.engine = std::move(made);
  log::info("communicator {:016x}: rank {} of {}, vendor engine", vendors.id(), vendors.rank(), vendors.size());
  communicator.counts = std::make_unique<CallCounts>(vendors.size());
  std::vector<collectives::MemberInfo> members;
  if (network) {
    auto told = collectives::exchangeMembers(*network, vendors.device(), job ? job->contact() : std::string());
    if (told) {
      members = std::move(*told);
    } else {
      notWatched(told.error());
      network = nullptr;
    }
  }
  int place = noPlace;
  if (!network)
    job = nullptr;
  else if (job)
    place = job->add({&vendors, nullptr, std::move(members), network->secret(), communicator.settings.vendor.name,
                      communicator.counts.get()});
  // Whoever is told of launches is the job's, and the job stays only for communicators that it watches.
  if (job) vendors.tellOfLaunches(job->launchedWork());
  communicator.network = std::move(network);
  communicator.start(std::move(job), place);
}

/// What Falcon calls a communicator that nobody else knows yet.
CommunicatorId newName(const ncclComm& parent) {
  static constinit std::atomic<std::uint64_t> made{0};
  return bootstrap::hashOf({parent.engine->id(), ++made});
}

/// By the way that rides in an id.
Meeting::Join joinBy(const bootstrap::UniqueId& way, Rank rank, int size, std::shared_ptr<instrument::Making> making) {
  return [=](const bootstrap::GivenUp& givenUp) -> Result<Network> {
    auto reactor = transport::processReactor();
    if (!reactor) return reactor.error();
    return control::joinShown(*reactor, way, rank, size, *making, [&] { return givenUp().has_value(); });
  };
}

using OverNetwork = std::function<Result<Network>(bootstrap::CommunicatorNetwork&, const bootstrap::GivenUp&)>;

/// Of what is made of the parent. Nothing to do where nobody watches that.
std::unique_ptr<Meeting> meetingOver(const ncclComm& parent, OverNetwork divide) {
  if (!parent.network) return nullptr;
  return std::make_unique<Meeting>([whole = parent.network, divide = std::move(divide)](
                                       const bootstrap::GivenUp& givenUp) { return divide(*whole, givenUp); });
}

Network networkOf(const std::unique_ptr<Meeting>& meeting) {
  return meeting ? meeting->network() : nullptr;
}

/// The same as a step that all ranks of the parent take.
std::unique_ptr<Meeting> stepOver(ncclComm& parent, OverNetwork step) {
  const std::uint64_t number = parent.networkSteps++;
  return meetingOver(parent,
                     [number, step = std::move(step)](bootstrap::CommunicatorNetwork& whole,
                                                      const bootstrap::GivenUp& givenUp) -> Result<Network> {
                       const Status agreed = control::agreeOnStep(number, [&](std::string_view mine) {
                         return whole.allGather(mine, parameters::initTimeout.value(), givenUp);
                       });
                       if (!agreed) return agreed.error();
                       return step(whole, givenUp);
                     });
}

}  // namespace

Status establishOnVendor(ncclComm& communicator, Network network, std::shared_ptr<control::Job> job,
                         bool anybodyWatches) {
  const auto id = shareVendorsId(*network);
  if (!id) return id.error();
  auto made =
      gpu::VendorCommunicator::create(Process::instance().vendorLibrary(), std::span(&*id, 1),
                                      {network->size(), network->rank(), network->id()}, communicator.settings.vendor);
  if (!made) return made.error();
  startOnVendor(communicator, std::move(*made), anybodyWatches ? std::move(network) : nullptr, std::move(job));
  return {};
}

Result<ncclUniqueId> newVendorsId(const gpu::VendorLibrary& library) {
  auto id = vendorsIdBy(library);
  if (id && Process::instance().watches()) gpu::furnish(*id);
  return id;
}

Status checkVendorsId(const char* function, const ncclUniqueId& id) {
  if (Process::instance().deviceLibrary()) return {};
  if (!gpu::read(id)) return bootstrap::UniqueId::parse(id.internal).error();
  return log::decided(Error::invalidUsage(
      "{}: the unique id was made where the vendor's NCCL moves the data, which this process does without: {}; set "
      "NCCL_FALCON_ENGINE=host on all ranks for host memory",
      function, Process::instance().offer().obstacle));
}

Status joinOnVendor(ncclComm& communicator, std::span<const ncclUniqueId> ids, int size, Rank rank) {
  const auto library = Process::instance().deviceLibrary();
  const auto way = Process::instance().watches() ? gpu::read(ids.front()) : std::nullopt;
  const auto job = way ? jobBy(*way) : nullptr;
  std::optional<Meeting> meeting;
  if (job) {
    auto making = std::make_shared<instrument::Making>();
    if (size > 1)
      *making = job->making({instrument::MakingKind::init, way->key, rank, size, communicator.settings.vendor.name,
                             SystemClock::instance().now()});
    meeting.emplace(joinBy(*way, rank, size, std::move(making)));
  }
  const CommunicatorId name =
      way ? way->key : bootstrap::hashOf(std::string_view(ids.front().internal, sizeof ids.front().internal));
  auto made = gpu::VendorCommunicator::create(library, ids, {size, rank, name}, communicator.settings.vendor);
  if (!made) return made.error();
  startOnVendor(communicator, std::move(*made), meeting ? meeting->network() : nullptr, job);
  return {};
}

Status splitOnVendor(ncclComm& parent, ncclComm& child, int color, int key) {
  const auto meeting =
      stepOver(parent, [color, key](bootstrap::CommunicatorNetwork& whole, const bootstrap::GivenUp& givenUp) {
        return whole.split(color, key, parameters::initTimeout.value(), givenUp);
      });
  auto made = parent.vendors->split(color, key, child.settings.ofChild(), newName(parent));
  if (!made) return made.error();
  Network part = networkOf(meeting);
  if (*made) startOnVendor(child, std::move(*made), std::move(part), parent.job);
  return {};
}

Status shrinkOnVendor(ncclComm& parent, ncclComm& child, std::span<const Rank> excluded, bool despiteFailure) {
  const auto meeting =
      meetingOver(parent, [out = std::vector(excluded.begin(), excluded.end())](bootstrap::CommunicatorNetwork& whole,
                                                                                const bootstrap::GivenUp& givenUp) {
        return whole.shrink(out, parameters::initTimeout.value(), givenUp);
      });
  auto made = parent.vendors->shrink(excluded, despiteFailure, child.settings.ofChild(), newName(parent));
  if (!made) return made.error();
  Network part = networkOf(meeting);
  if (*made) startOnVendor(child, std::move(*made), std::move(part), parent.job);
  return {};
}

Result<ncclUniqueId> uniqueIdToGrow(ncclComm& parent) {
  auto id = parent.vendors->uniqueIdToGrow();
  if (id && parent.network) gpu::furnish(*id);
  return id;
}

Status growOnVendor(ncclComm& parent, ncclComm& child, int size, const std::optional<ncclUniqueId>& id,
                    const std::optional<ncclUniqueId>& ours, Rank rank) {
  const auto meeting =
      stepOver(parent,
               [mine = ours ? gpu::read(*ours) : std::nullopt, size](
                   bootstrap::CommunicatorNetwork& whole, const bootstrap::GivenUp& givenUp) -> Result<Network> {
                 const auto way = control::agreedId(whole, mine, givenUp);
                 if (!way) return way.error();
                 return joinBy(*way, whole.rank(), size, std::make_shared<instrument::Making>())(givenUp);
               });
  auto made = parent.vendors->grow(size, id ? &*id : nullptr, rank, child.settings.ofChild(), newName(parent));
  if (!made) return made.error();
  Network network = networkOf(meeting);
  if (*made) startOnVendor(child, std::move(*made), std::move(network), parent.job);
  return {};
}

Status joinGrownOnVendor(ncclComm& communicator, int size, const ncclUniqueId& id, Rank rank) {
  constexpr const char* function = "ncclCommGrow";
  const auto library = Process::instance().deviceLibrary();
  if (!library)
    return log::decided(Error::invalidUsage(
        "{}: uniqueId was made for a communicator of the vendor's, whose library this process does not have",
        function));
  const auto way = Process::instance().watches() ? gpu::read(id) : std::nullopt;
  const auto job = way ? jobBy(*way) : nullptr;
  std::optional<Meeting> meeting;
  if (job) meeting.emplace(joinBy(*way, rank, size, std::make_shared<instrument::Making>()));
  auto made =
      gpu::VendorCommunicator::joinGrown(library, id, {size, rank, way ? way->key : 0}, communicator.settings.vendor);
  if (!made) return made.error();
  startOnVendor(communicator, std::move(*made), meeting ? meeting->network() : nullptr, job);
  return {};
}

}  // namespace falcon::api
