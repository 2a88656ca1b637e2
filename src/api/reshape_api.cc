// nccl_falcon.h: ranks exchange their roles.
#include "api/exports.h"

#include <array>
#include <numeric>

#include "api/communicator.h"
#include "api/guard.h"
#include "api/reshape_role.h"
#include "base/applications_callback.h"
#include "base/log.h"
#include "base/wire.h"
#include "control/checkpointing.h"
#include "reshape/reshaping.h"

using namespace falcon;
using namespace falcon::api;

namespace {

/// A rank's place in the layout, on the wire; none: it has registered none.
struct LayoutText {
  static std::string encode(const std::optional<control::RegisteredPart>& layout) {
    if (!layout) return {};
    control::RegisteredPart copy = *layout;
    WireWriter writer;
    for (const int* each : numbersOf(copy)) writer.put(std::int32_t{*each});
    return writer.put(std::uint8_t{copy.limits.evenOnly}).take();
  }
  static std::optional<control::RegisteredPart> decode(std::string_view bytes) {
    WireReader reader(bytes);
    control::RegisteredPart layout;
    for (int* each : numbersOf(layout)) *each = reader.get<std::int32_t>();
    layout.limits.evenOnly = reader.get<bool>();
    if (!reader.finished()) return std::nullopt;
    return layout;
  }

 private:
  static std::array<int*, 11> numbersOf(control::RegisteredPart& layout) {
    return {&layout.dataParallelSize,
            &layout.pipelineParallelSize,
            &layout.tensorParallelSize,
            &layout.dataParallelIndex,
            &layout.pipelineParallelIndex,
            &layout.tensorParallelIndex,
            &layout.microBatches,
            &layout.limits.multiple,
            &layout.limits.leastMicroBatches,
            &layout.limits.mostMicroBatches,
            &layout.limits.rail};
  }
};

FALCON_CALLS_APPLICATION ncclResult_t askApplication(decltype(ncclFalconReshapeHooks_t::prepare) prepare, void* context,
                                                     int role, const ncclFalconBuffer_t*& buffers, std::size_t& count) {
  const ncclResult_t made = prepare(context, role, &buffers, &count);
  FALCON_CALLBACK_ENDS;
  return made;
}

FALCON_CALLS_APPLICATION void tellOfRole(void (*hook)(void* context, int role), void* context, int role) {
  hook(context, role);
  FALCON_CALLBACK_ENDS;
}

/// The framework's hooks and the host engine, as reshape() sees them.
class EngineWorld final : public reshape::ReshapeWorld {
 public:
  EngineWorld(const char* function, ncclComm& communicator)
      : function_(function),
        communicator_(communicator),
        hooks_(communicator.reshape),
        exchange_(communicator.host->network(), communicator.job.get()),
        rebuilt_(hooks_.groups.size()) {}

  Result<std::vector<std::string>> allGather(std::string_view mine) override { return exchange_.allGather(mine); }

  void at(reshape::ReshapeStep step) override { log::info("{}: step \"{}\"", function_, nameOf(step)); }

  std::vector<reshape::StateBuffer> state() const override { return communicator_.checkpoints.state().buffers(); }

  Result<std::vector<reshape::StateBuffer>> prepare(int role) override {
    const ncclFalconBuffer_t* given = nullptr;
    std::size_t count = 0;
    const ncclResult_t made = askApplication(hooks_.prepare, hooks_.context, role, given, count);
    if (made != ncclSuccess)
      return Error::system("{}: prepare() for role {} returned {}", function_, role, static_cast<int>(made));
    prepared_ = role;
    if (count > 0 && !given)
      return Error::invalidUsage("{}: prepare() gives {} buffers for role {}, and NULL", function_, count, role);
    std::vector<reshape::StateBuffer> buffers;
    for (std::size_t i = 0; i < count; ++i) {
      if (!given[i].name)
        return Error::invalidUsage("{}: buffer {} that prepare() gives for role {} has no name", function_, i, role);
      buffers.push_back({given[i].name, static_cast<std::byte*>(given[i].pointer), given[i].bytes, false});
    }
    return buffers;
  }

  Status exchange(std::vector<reshape::StateMessage> messages) override {
    // By the engine and not by the library's own exports: those may be another library's in this process.
    std::vector<Submission> group;
    for (const reshape::StateMessage& message : messages) {
      Call call{.operation = message.sent ? Operation::send : Operation::receive, .type = DataType::i8};
      call.send = message.sent;
      call.receive = message.received;
      call.count = message.bytes;
      call.peer = message.sent ? message.to : message.from;
      group.push_back({communicator_.engine.get(), call});
    }
    return group.empty() ? Status() : communicator_.engine->run(group);
  }

  std::vector<reshape::GroupPlace> groups() const override {
    std::vector<reshape::GroupPlace> places;
    for (const ncclComm* group : hooks_.groups)
      places.push_back(group ? reshape::GroupPlace{group->engine->id(), group->engine->rank()} : reshape::GroupPlace{});
    return places;
  }

  Status rebuild(std::size_t place, int color, const reshape::GroupPlace& as) override {
    auto made = communicator_.host->split(color, as.rank, hooks_.groups[place]->settings.wish());
    if (!made) return made.error();
    if (!*made) return {};
    auto counts = std::make_unique<CallCounts>((*made)->size());
    rebuilt_[place] = {std::move(*made), std::move(counts)};
    return {};
  }

  void commit(int role, std::vector<reshape::StateBuffer> state) override {
    communicator_.checkpoints.state().replace(std::move(state));
    if (hooks_.commit) tellOfRole(hooks_.commit, hooks_.context, role);
  }
  void adoptGroups() override {
    for (std::size_t place = 0; place < rebuilt_.size(); ++place)
      if (rebuilt_[place].engine)
        hooks_.groups[place]->adopt(std::move(rebuilt_[place].engine), std::move(rebuilt_[place].counts));
  }
  void abandon() override {
    rebuilt_.clear();
    if (prepared_ && hooks_.abandon) tellOfRole(hooks_.abandon, hooks_.context, *prepared_);
  }

 private:
  const char* const function_;
  ncclComm& communicator_;
  const ReshapeRole& hooks_;
  control::NetworkExchange exchange_;
  std::optional<int> prepared_;
  struct Rebuilt {
    std::unique_ptr<collectives::HostCommunicator> engine;
    std::unique_ptr<CallCounts> counts;
  };
  std::vector<Rebuilt> rebuilt_;
};

Result<CommunicatorUse> requireHost(const char* function, ncclComm_t comm) {
  auto use = requireReady(function, comm);
  if (!use) return use.error();
  if (!(*use)->host)
    return log::decided(Error::invalidUsage(
        "{}: comm is the vendor's: roles are exchanged between ranks on host memory only", function));
  return use;
}

/// To Falcon, which plans with it.
void sayRole(ncclComm& communicator) {
  if (!communicator.job) return;
  ReshapeRole& own = communicator.reshape;
  own.toldBytes = communicator.checkpoints.state().bytes();
  communicator.job->canReshape(*communicator.engine, own.roleOf(communicator.engine->rank()), own.toldBytes);
}

Status registerReshape(ncclComm_t comm, const ncclFalconReshapeHooks_t* given) {
  constexpr const char* function = "ncclFalconRegisterReshape";
  auto use = requireHost(function, comm);
  if (!use) return use.error();
  if (const Status there = requireOutput(function, "hooks", given); !there) return there;
  if (given->size < sizeof *given)
    return log::decided(Error::invalidArgument("{}: hooks->size is {}; set it to sizeof(ncclFalconReshapeHooks_t)",
                                               function, given->size));
  if (!given->prepare) return log::decided(Error::invalidArgument("{}: hooks->prepare is NULL", function));
  if (given->groupCount < 0 || (given->groupCount > 0 && !given->groups))
    return log::decided(Error::invalidArgument("{}: hooks->groups is {} with {} groups", function,
                                               given->groups ? "not NULL" : "NULL", given->groupCount));
  std::vector<ncclComm*> groups;
  for (int i = 0; i < given->groupCount; ++i) {
    ncclComm* const group = given->groups[i];
    if (group) {
      if (const auto ready = requireHost(function, group); !ready) return ready.error();
      if (group == comm)
        return log::decided(
            Error::invalidArgument("{}: group {} is comm itself, which has all ranks whatever their "
                                   "roles",
                                   function, i));
    }
    groups.push_back(group);
  }
  ReshapeRole& role = (*use)->reshape;
  role.context = given->context;
  role.prepare = given->prepare;
  role.commit = given->commit;
  role.abandon = given->abandon;
  role.groups = std::move(groups);
  sayRole(**use);
  return {};
}

const reshape::Roles& rolesOf(ncclComm& communicator) {
  reshape::Roles& roles = communicator.reshape.roles;
  if (roles.empty()) {
    roles.resize(static_cast<std::size_t>(communicator.engine->size()));
    std::iota(roles.begin(), roles.end(), 0);
  }
  return roles;
}

/// The layouts by role; nothing where some rank has registered none.
Result<std::vector<control::RegisteredPart>> layoutsByRole(ncclComm& communicator, EngineWorld& world) {
  const auto texts = world.allGather(LayoutText::encode(communicator.layout));
  if (!texts) return texts.error();
  const reshape::Roles& roles = rolesOf(communicator);
  std::vector<control::RegisteredPart> layouts(roles.size());
  for (std::size_t rank = 0; rank < texts->size() && rank < roles.size(); ++rank) {
    const auto layout = LayoutText::decode((*texts)[rank]);
    if (!layout) return std::vector<control::RegisteredPart>();
    layouts[static_cast<std::size_t>(roles[rank])] = *layout;
  }
  return layouts;
}

}  // namespace

namespace falcon::api {

Status reshapeTo(const char* function, ncclComm& communicator, reshape::Roles after, std::set<Link> avoid) {
  ReshapeRole& own = communicator.reshape;
  if (!own.prepare)
    return log::decided(Error::invalidUsage("{}: call ncclFalconRegisterReshape for comm first", function));
  for (std::size_t i = 0; i < own.groups.size(); ++i)
    if (own.groups[i] && !isReady(own.groups[i]))
      return log::decided(Error::invalidUsage("{}: group {} of ncclFalconRegisterReshape is destroyed", function, i));
  const Rank rank = communicator.engine->rank();
  const reshape::Roles before = rolesOf(communicator);
  EngineWorld world(function, communicator);
  const auto layouts = layoutsByRole(communicator, world);
  if (!layouts) return layouts.error();
  reshape::ReshapeRequest request{rank, before, std::move(after), {}, std::move(avoid)};
  for (const control::RegisteredPart& layout : *layouts)
    request.places.push_back(layout.pipelineParallelIndex * layout.tensorParallelSize + layout.tensorParallelIndex);
  const auto begun = std::chrono::steady_clock::now();
  const auto result = reshape::reshape(request, world);
  if (!result)
    return log::decided(
        Error(result.error().code(), fmt::format("{}: nothing is changed: {}", function, result.error().message())));
  own.roles = request.after;
  const int role = own.roles[static_cast<std::size_t>(rank)];
  if (!layouts->empty()) {
    // Its NIC stays where it is.
    const int rail = communicator.layout->limits.rail;
    communicator.layout = (*layouts)[static_cast<std::size_t>(role)];
    communicator.layout->limits.rail = rail;
    if (communicator.job)
      if (const Status known = communicator.job->registerLayout(*communicator.engine, *communicator.layout); !known)
        return known;
  }
  log::info("{}: rank {} has role {} now; {} bytes of state came, of {} in all, in {:.3f} s", function, rank, role,
            result->bytesReceived, result->bytesInAll, seconds(std::chrono::steady_clock::now() - begun));
  return {};
}

namespace {

/// Falcon is told of it, however it went. `change.agreement` 0: the program wants it.
Status reshapeAndTell(const char* function, ncclComm& communicator, const control::Job::RolesDue& change) {
  const auto begun = std::chrono::steady_clock::now();
  const Status done = reshapeTo(function, communicator, change.roles, {change.avoid.begin(), change.avoid.end()});
  if (!communicator.job) return done;
  sayRole(communicator);
  communicator.job->reshaped(change, seconds(std::chrono::steady_clock::now() - begun),
                             done ? std::string() : std::string(done.error().message()));
  return done;
}

}  // namespace

Status reshapeBefore(const char* function, ncclComm& communicator, std::uint64_t iteration) {
  // Frameworks make part of their state in the first step.
  if (communicator.reshape.toldBytes != communicator.checkpoints.state().bytes()) sayRole(communicator);
  const auto due = communicator.job->rolesDue(*communicator.engine, iteration);
  if (!due) return {};
  return reshapeAndTell(function, communicator, *due) ? Status() : communicator.engine->asyncError();
}

}  // namespace falcon::api

extern "C" {

ncclResult_t ncclFalconRegisterReshape(ncclComm_t comm, const ncclFalconReshapeHooks_t* hooks) {
  return guarded("ncclFalconRegisterReshape", [&] { return registerReshape(comm, hooks); });
}

ncclResult_t ncclFalconReshape(ncclComm_t comm, const int* roles, int count) {
  constexpr const char* function = "ncclFalconReshape";
  return guarded(function, [&]() -> Status {
    auto use = requireHost(function, comm);
    if (!use) return use.error();
    if (const Status given = requireOutput(function, "roles", roles); !given) return given;
    if (count != (*use)->engine->size())
      return log::decided(
          Error::invalidArgument("{}: {} roles for {} ranks of comm", function, count, (*use)->engine->size()));
    const reshape::Roles after(roles, roles + count);
    if (const Status valid = reshape::checkRoles(after, count); !valid)
      return log::decided(Error::invalidArgument("{}: {}", function, valid.error().message()));
    return reshapeAndTell(function, **use, {0, after, {}});
  });
}

ncclResult_t ncclFalconRole(ncclComm_t comm, int* role) {
  constexpr const char* function = "ncclFalconRole";
  return guarded(function, [&]() -> Status {
    auto use = requireReady(function, comm);
    if (!use) return use.error();
    if (const Status given = requireOutput(function, "role", role); !given) return given;
    *role = (*use)->reshape.roleOf((*use)->engine->rank());
    return {};
  });
}

ncclResult_t ncclFalconRoles(ncclComm_t comm, int* roles, int count) {
  constexpr const char* function = "ncclFalconRoles";
  return guarded(function, [&]() -> Status {
    auto use = requireReady(function, comm);
    if (!use) return use.error();
    if (const Status given = requireOutput(function, "roles", roles); !given) return given;
    if (count != (*use)->engine->size())
      return log::decided(
          Error::invalidArgument("{}: room for {} roles of {} ranks of comm", function, count, (*use)->engine->size()));
    for (Rank rank = 0; rank < count; ++rank) roles[rank] = (*use)->reshape.roleOf(rank);
    return {};
  });
}

}  // extern "C"
