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
#include "gpu/unique_id_room.h"
#include "transport/reactor.h"

namespace falcon::api {
namespace {

using Network = std::shared_ptr<bootstrap::CommunicatorNetwork>;
using Vendors = std::unique_ptr<gpu::VendorCommunicator>;

// For what Falcon's ranks say to each other before the vendor's library is called.
constexpr Nanoseconds patience = 30s;

void notWatched(const Error& why) {
  log::notice("a communicator is not watched: {}", why.message());
}

gpu::VendorCommunicator::Surroundings surroundingsWith(const std::shared_ptr<control::Job>& job) {
  return {Process::instance().vendorLibrary(), job ? &job->launchedWork() : nullptr};
}

Result<ncclUniqueId> vendorsIdBy(const gpu::VendorLibrary& library) {
  ncclUniqueId id{};
  const Status made = library.status(library.functions.getUniqueId(&id), "ncclGetUniqueId", nullptr);
  if (!made) return log::decided(made.error());
  return id;
}

/// The job that a communicator with this way to meet is of. Null: Falcon is off, or has no network.
std::shared_ptr<control::Job> jobBy(const bootstrap::UniqueId& way) {
  auto reactor = transport::processReactor();
  return reactor ? control::Job::acquire(*reactor, fmt::format("{:016x}", way.key)) : nullptr;
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

/// `network`: null where nobody watches the communicator.
void startOnVendor(ncclComm& communicator, Vendors made, Network network, std::shared_ptr<control::Job> job) {
  gpu::VendorCommunicator& vendors = *made;
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
  communicator.network = std::move(network);
  communicator.start(std::move(job), place);
}

/// Falcon's network of a part of the parent's ranks, where there is one; null: none, or this rank has no part.
template <class Divide>
Network partOf(const ncclComm& parent, Divide&& divide) {
  if (!parent.network) return nullptr;
  auto part = divide(*parent.network);
  if (part) return std::move(*part);
  notWatched(part.error());
  return nullptr;
}

/// What Falcon calls a communicator; without a network of it nobody else has to know.
CommunicatorId nameOf(const Network& network, const ncclComm& parent) {
  static constinit std::atomic<std::uint64_t> unwatched{0};
  return network ? network->id() : bootstrap::hashOf({parent.engine->id(), ++unwatched});
}

/// After they have met in the vendor's. Null: nobody watches, or not all came.
Network meet(const std::optional<bootstrap::UniqueId>& way, const gpu::VendorCommunicator& made) {
  return way ? Meeting(*way, made.rank(), made.size(), {}).network() : nullptr;
}

/// What rides in the id of one that grows, which at least one rank has. Collective over the parent's network.
std::optional<bootstrap::UniqueId> wayToMeet(const ncclComm& parent, const std::optional<ncclUniqueId>& id) {
  if (!parent.network) return std::nullopt;
  const auto mine = id ? std::string_view(id->internal, sizeof id->internal) : std::string_view();
  const auto ids = parent.network->allGather(mine, patience);
  if (!ids) {
    notWatched(ids.error());
    return std::nullopt;
  }
  for (const std::string& each : *ids) {
    ncclUniqueId theirs{};
    if (each.size() != sizeof theirs.internal) continue;
    std::memcpy(theirs.internal, each.data(), sizeof theirs.internal);
    if (auto way = gpu::read(theirs)) return way;
  }
  return std::nullopt;
}

}  // namespace

Status establishOnVendor(ncclComm& communicator, Network network, std::shared_ptr<control::Job> job,
                         bool anybodyWatches) {
  const auto id = shareVendorsId(*network);
  if (!id) return id.error();
  auto made =
      gpu::VendorCommunicator::create(surroundingsWith(job), std::span(&*id, 1),
                                      {network->size(), network->rank(), network->id()}, communicator.settings.vendor);
  if (!made) return made.error();
  startOnVendor(communicator, std::move(*made), anybodyWatches ? std::move(network) : nullptr, std::move(job));
  return {};
}

Result<ncclUniqueId> newVendorsId(const gpu::VendorLibrary& library) {
  auto id = vendorsIdBy(library);
  if (id && parameters::falcon.value()) gpu::furnish(*id);
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
  const auto way = parameters::falcon.value() ? gpu::read(ids.front()) : std::nullopt;
  std::shared_ptr<control::Job> job;
  std::optional<Meeting> meeting;
  if (way) {
    job = jobBy(*way);
    instrument::Making making;
    if (job && size > 1)
      making = job->making({instrument::MakingKind::init, way->key, rank, size, communicator.settings.vendor.name,
                            SystemClock::instance().now()});
    if (job) meeting.emplace(*way, rank, size, std::move(making));
  }
  const CommunicatorId name =
      way ? way->key : bootstrap::hashOf(std::string_view(ids.front().internal, sizeof ids.front().internal));
  auto made = gpu::VendorCommunicator::create({library, job ? &job->launchedWork() : nullptr}, ids, {size, rank, name},
                                              communicator.settings.vendor);
  if (!made) return made.error();
  startOnVendor(communicator, std::move(*made), meeting ? meeting->network() : nullptr, std::move(job));
  return {};
}

Status splitOnVendor(ncclComm& parent, ncclComm& child, int color, int key) {
  Network part = partOf(parent, [&](bootstrap::CommunicatorNetwork& whole) {
    return whole.split(color, key, parameters::initTimeout.value());
  });
  auto made = parent.vendors->split(color, key, child.settings.ofChild(), nameOf(part, parent));
  if (!made) return made.error();
  if (*made) startOnVendor(child, std::move(*made), std::move(part), parent.job);
  return {};
}

Status shrinkOnVendor(ncclComm& parent, ncclComm& child, std::span<const Rank> excluded, bool despiteFailure) {
  Network part = partOf(parent, [&](bootstrap::CommunicatorNetwork& whole) {
    return whole.shrink(excluded, parameters::initTimeout.value(), []() -> std::optional<Error> { return {}; });
  });
  auto made = parent.vendors->shrink(excluded, despiteFailure, child.settings.ofChild(), nameOf(part, parent));
  if (!made) return made.error();
  if (*made) startOnVendor(child, std::move(*made), std::move(part), parent.job);
  return {};
}

Result<ncclUniqueId> uniqueIdToGrow(ncclComm& parent) {
  auto id = parent.vendors->uniqueIdToGrow();
  if (id && parent.network) gpu::furnish(*id);
  return id;
}

Status growOnVendor(ncclComm& parent, ncclComm& child, int size, const std::optional<ncclUniqueId>& id, Rank rank) {
  const auto way = wayToMeet(parent, id);
  const CommunicatorId name = way ? way->key : nameOf(nullptr, parent);
  auto made = parent.vendors->grow(size, id ? &*id : nullptr, rank, child.settings.ofChild(), name);
  if (!made) return made.error();
  if (!*made) return {};
  Network network = meet(way, **made);
  startOnVendor(child, std::move(*made), std::move(network), parent.job);
  return {};
}

Status joinGrownOnVendor(ncclComm& communicator, int size, const ncclUniqueId& id, Rank rank) {
  constexpr const char* function = "ncclCommGrow";
  const auto library = Process::instance().deviceLibrary();
  if (!library)
    return log::decided(Error::invalidUsage(
        "{}: uniqueId was made for a communicator of the vendor's, whose library this process does not have",
        function));
  const auto way = gpu::read(id);
  auto job = way && parameters::falcon.value() ? jobBy(*way) : nullptr;
  auto made = gpu::VendorCommunicator::joinGrown({library, job ? &job->launchedWork() : nullptr}, id,
                                                 {size, rank, way ? way->key : 0}, communicator.settings.vendor);
  if (!made) return made.error();
  Network network = meet(way, **made);
  startOnVendor(communicator, std::move(*made), std::move(network), std::move(job));
  return {};
}

}  // namespace falcon::api
