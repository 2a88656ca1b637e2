#include "collectives/host_communicator.h"

#include <algorithm>
#include <map>
#include <mutex>

#include "base/log.h"
#include "base/parameters.h"
#include "collectives/connected_one_sided.h"
#include "collectives/direct_one_sided.h"
#include "collectives/direct_setup.h"
#include "collectives/group_driver.h"
#include "collectives/member_agreement.h"
#include "collectives/member_info.h"
#include "collectives/network_choice.h"
#include "collectives/one_sided.h"
#include "collectives/registrations.h"
#include "collectives/single_call.h"
#include "collectives/time_estimate.h"
#include "collectives/tuner_setup.h"
#include "topology/ring_order.h"
#include "transport/chunk_size.h"

namespace falcon::collectives {
namespace {

std::vector<transport::Peer> peersOf(const std::vector<MemberInfo>& members) {
  std::vector<transport::Peer> peers;
  for (const MemberInfo& member : members) peers.push_back(member.peer);
  return peers;
}

class LocalCommunicator final : public HostCommunicator {
 public:
  LocalCommunicator(std::shared_ptr<transport::Reactor> reactor,
                    std::shared_ptr<bootstrap::CommunicatorNetwork> network, std::vector<MemberInfo> members,
                    std::unique_ptr<transport::Ports> ports, const MemberShape& shape, const EngineHooks& hooks)
      : reactor_(std::move(reactor)),
        network_(std::move(network)),
        members_(std::move(members)),
        ports_(std::move(ports)),
        waiter_(transport::makeWaiter()),
        member_(shape, *ports_, *network_, hooks, topology::ringOrder(nodesOf(members_))) {
    network_->onFailure([](const Error&) { transport::ringOwnDoorbell(); });
    network_->onDeparture([weak = std::weak_ptr(ports_)](Rank peer) {
      if (const auto stillThere = weak.lock()) stillThere->left(peer);
    });
  }

  EngineKind kind() const override { return EngineKind::host; }
  CommunicatorId id() const override { return network_->id(); }
  Rank rank() const override { return member_.shape.rank; }
  int size() const override { return member_.shape.size; }
  int device() const override { return members_[rank()].device; }

  std::uint64_t nextCollective() const override { return member_.nextCollective.load(std::memory_order_relaxed); }

  Status run(std::span<const Submission> group) override;
  Status run(const Call& call) override;
  Status check(std::span<const Submission> group) override;
  Result<double> estimate(std::span<const Submission> group) override;

  Status makeOp(DataType, PreMultiplier&) override { return {}; }  // each call carries what it multiplies by
  Status destroyOp(const PreMultiplier&) override { return {}; }

  Result<void*> registerBuffer(void* buffer, std::size_t size) override { return buffers_.add({buffer, size}); }
  Status deregisterBuffer(void* handle) override;
  Result<void*> registerWindow(void* buffer, std::size_t size, int flags) override;
  Status deregisterWindow(void* window) override;
  void missWindow() override;
  Result<void*> addressOf(void* window) override;
  Result<std::uint64_t> numberOf(const char* function, const void* window) const override;

  Status revoke() override;
  Status finalize() override { return member_.health(); }  // calls are complete when they return
  Status abort() override;
  Status asyncError() const override;
  Status end() override { return {}; }  // there is nothing that could fail

  Result<std::unique_ptr<HostCommunicator>> split(int color, int key, const CommunicatorWish& wish) override;
  Result<std::unique_ptr<HostCommunicator>> shrink(std::span<const Rank> excluded, bool despiteFailure,
                                                   const CommunicatorWish& wish) override;

  const std::vector<MemberInfo>& members() const override { return members_; }
  bootstrap::CommunicatorNetwork& network() override { return *network_; }
  const std::shared_ptr<transport::Ports>& ports() override { return ports_; }
  OneSided& oneSided() override { return *oneSided_; }

  std::vector<Rank> ringOrder() const override { return member_.rings.current(); }
  Status proposeRing(std::uint64_t fromCollective, std::vector<Rank> order) override {
    return member_.rings.propose(fromCollective, std::move(order));
  }
  void decideRing(std::uint64_t fromCollective, bool commit) override {
    member_.rings.decide(fromCollective, commit);
    transport::ringOwnDoorbell();
  }

  /// Once it is known which ways there are between the ranks.
  void beginOneSided(std::shared_ptr<transport::Reactor> reactor) {
    std::unique_ptr<OneSidedWay> way;
    if (member_.direct && member_.direct->signals())
      way = std::make_unique<DirectOneSided>(member_, *waiter_);
    else
      way = std::make_unique<ConnectedOneSided>(member_, *waiter_, std::move(reactor), peersOf(members_));
    oneSided_.emplace(member_, std::move(way));
  }
  LocalMember& member() { return member_; }
  bool sharesMemoryWithAll();

 private:
  /// The part of this communicator whose network this is; null where this rank has no part.
  Result<std::unique_ptr<HostCommunicator>> childOver(std::shared_ptr<bootstrap::CommunicatorNetwork> network,
                                                      const CommunicatorWish& wish);

  const std::shared_ptr<transport::Reactor> reactor_;
  const std::shared_ptr<bootstrap::CommunicatorNetwork> network_;
  const std::vector<MemberInfo> members_;
  const std::shared_ptr<transport::Ports> ports_;
  const std::unique_ptr<transport::Waiter> waiter_;
  mutable LocalMember member_;
  std::optional<OneSided> oneSided_;  // before it is handed out
  Registrations buffers_, windows_;
  std::mutex windowsMutex_;  // one thread at a time opens and closes
};

Result<std::unique_ptr<HostCommunicator>> LocalCommunicator::split(int color, int key, const CommunicatorWish& wish) {
  if (const Status sound = asyncError(); !sound) return sound.error();
  auto network = network_->split(color, key, parameters::initTimeout.value());
  if (!network) return network.error();
  return childOver(std::move(*network), wish);
}

Result<std::unique_ptr<HostCommunicator>> LocalCommunicator::childOver(
    std::shared_ptr<bootstrap::CommunicatorNetwork> network, const CommunicatorWish& wish) {
  if (!network) return std::unique_ptr<HostCommunicator>();
  return create(reactor_, std::move(network), device(), member_.hooks, members_[rank()].extra, wish);
}

Result<std::unique_ptr<HostCommunicator>> LocalCommunicator::shrink(std::span<const Rank> excluded, bool despiteFailure,
                                                                    const CommunicatorWish& wish) {
  if (despiteFailure) {
    if (const Status stopped = revoke(); !stopped) return stopped.error();
  } else if (const Status sound = asyncError(); !sound) {
    return sound.error();
  }
  const auto broken = [&]() -> std::optional<Error> { return despiteFailure ? std::nullopt : network_->failure(); };
  auto network = network_->shrink(excluded, parameters::initTimeout.value(), broken);
  if (!network) return network.error();
  return childOver(std::move(*network), wish);
}

Status LocalCommunicator::revoke() {
  member_.revoke();
  transport::ringOwnDoorbell();
  return {};
}

/// A revoked communicator is well: it only takes no calls.
Status LocalCommunicator::asyncError() const {
  if (!member_.revoked()) return member_.health();
  if (const auto failure = network_->failure()) return *failure;
  return {};
}

Status LocalCommunicator::abort() {
  if (member_.direct) member_.direct->board().giveUp();  // else who waits for it would think that it left in order
  member_.fail(Error::remote("rank {} aborted the communicator", rank()));
  transport::ringOwnDoorbell();
  return {};
}

Status LocalCommunicator::deregisterBuffer(void* handle) {
  const auto known = buffers_.remove("ncclCommDeregister", "registered buffer", handle);
  return known ? Status() : known.error();
}

Status checkWindow(const void* buffer, int flags) {
  constexpr const char* function = "ncclCommWindowRegister";
  if ((flags & ~symmetricWindow) != 0)
    return log::decided(Error::invalidArgument("{}: winFlags is {:#x}, which means nothing", function, flags));
  if (reinterpret_cast<std::uintptr_t>(buffer) % windowAlignment != 0)
    return log::decided(Error::invalidArgument("{}: buff is {}; a window begins at a multiple of {} bytes", function,
                                               buffer, windowAlignment));
  return {};
}

Result<void*> LocalCommunicator::registerWindow(void* buffer, std::size_t size, int flags) {
  const Status sound = checkWindow(buffer, flags);
  const std::lock_guard lock(windowsMutex_);
  // Where it fails here the others count one more all the same.
  const std::uint64_t number = oneSided_->openWindow(buffer, sound ? size : 0);
  if (!sound) return sound.error();
  return windows_.add({buffer, size, number});
}

void LocalCommunicator::missWindow() {
  const std::lock_guard lock(windowsMutex_);
  oneSided_->openWindow(nullptr, 0);
}

Status LocalCommunicator::deregisterWindow(void* window) {
  const auto known = windows_.remove("ncclCommWindowDeregister", "window", window);
  if (!known) return known.error();
  const std::lock_guard lock(windowsMutex_);
  oneSided_->closeWindow(known->number);
  return {};
}

Result<void*> LocalCommunicator::addressOf(void* window) {
  const auto known = windows_.find("ncclWinGetUserPtr", "window", window);
  if (!known) return known.error();
  return known->address;
}

Result<std::uint64_t> LocalCommunicator::numberOf(const char* function, const void* window) const {
  const auto known = windows_.find(function, "window", window);
  if (!known) return known.error();
  return known->number;
}

bool LocalCommunicator::sharesMemoryWithAll() {
  for (Rank other = 0; other < size(); ++other)
    if (ports_->mediumTo(other) == transport::Medium::socket) return false;
  return true;
}

/// What a profiler plugin is told of the communicator.
plugin::ProfiledCommunicator profiledFacts(const HostCommunicator& communicator, const std::string& name) {
  return {.id = communicator.id(),
          .name = name.empty() ? nullptr : name.c_str(),
          .nodes = countOfNodes(communicator.members()),
          .ranks = communicator.size(),
          .rank = communicator.rank()};
}

/// For people who wonder what their settings have become.
void describe(const LocalMember& member, const std::vector<MemberInfo>& members) {
  if (!log::on(log::Level::info)) return;
  const MemberShape& shape = member.shape;
  log::info("communicator {:016x}: {} nodes, {} to {} channels, buffers of {} bytes, {}", member.id(),
            countOfNodes(members), shape.fewestChannels, shape.mostChannels, shape.chunkBytes * transport::chunkSlots,
            !member.direct                 ? "connections only"
            : member.direct->readsMemory() ? "ranks read each other's memory"
                                           : "short messages by a shared board");
}

/// All engines of a group are of one kind.
LocalCommunicator& localOf(const Submission& submission) {
  return static_cast<LocalCommunicator&>(*submission.engine);
}

/// The long way, which any calls can go: all side by side. `events`: what a profiler plugin is told of them; null: none
/// wants to know.
Status runTogether(std::span<const Submission> submissions, const Waiting& waiting, ProfiledApi* events = nullptr) {
  const Clock& clock = SystemClock::instance();
  // This is the one place of the host engine that records calls and lets itself be held. Who records above it (the C
  // ABI does, for both engines alike) creates its communicators without a call recorder.
  std::vector<HoldPoint*> holds;
  bool recorded = false;
  for (const Submission& submission : submissions) {
    const EngineHooks& hooks = localOf(submission).member().hooks;
    recorded |= hooks.calls != nullptr;
    if (hooks.hold && std::find(holds.begin(), holds.end(), hooks.hold) == holds.end()) holds.push_back(hooks.hold);
  }
  const Nanoseconds enter = recorded ? clock.now() : Nanoseconds(0);
  for (const Submission& submission : submissions)
    if (HoldPoint* hold = localOf(submission).member().hooks.hold) hold->pass();

  GroupRun run(clock);
  Status status;
  for (std::size_t i = 0; i < submissions.size() && status; ++i) {
    LocalMember& member = localOf(submissions[i]).member();
    status = run.add(member, submissions[i].call, events ? events->add(i, member.profiler.get()) : ProfiledCall());
  }
  if (events) events->launch();
  if (status) status = run.start();
  if (status) {
    status = drive(run, waiting, holds);
    if (recorded) run.record(enter, clock.now());
  }
  for (HoldPoint* hold : holds) hold->leaveCall();
  return status;
}

/// Collectives of one communicator, which take turns in any case.
Status runInTurn(LocalMember& member, std::span<const Submission> submissions, const Waiting& waiting) {
  for (const Submission& one : submissions)
    if (const Status possible = checkCall(member, one.call); !possible) return possible;
  for (const Submission& one : submissions) {
    const auto alone = runAlone(member, one.call, waiting);
    const Status done = alone ? *alone : runTogether({&one, 1}, waiting);
    if (!done) return done;
  }
  return {};
}

/// The short way of one call, of messages, or of collectives; null: they have to go the long one.
std::optional<Status> runShortWay(std::span<const Submission> submissions, const Waiting& waiting) {
  LocalMember& member = localOf(submissions[0]).member();
  const EngineHooks& hooks = member.hooks;
  if (hooks.calls) return {};
  const bool messages = areMessages(member, submissions), alone = submissions.size() == 1;
  if (!messages && !alone && !areCollectives(member, submissions)) return {};
  if (hooks.hold) hooks.hold->pass();
  std::optional<Status> done;
  if (messages)
    done = runMessages(member, submissions, waiting);
  else if (alone)
    done = runAlone(member, submissions[0].call, waiting);
  else
    done = runInTurn(member, submissions, waiting);
  if (hooks.hold) hooks.hold->leaveCall();
  return done;
}

bool hasProfiler(std::span<const Submission> group) {
  return std::any_of(group.begin(), group.end(),
                     [](const Submission& submission) { return localOf(submission).member().profiler != nullptr; });
}

/// The same as run() for calls of communicators with a profiler. Null: it wants nothing now; the calls are counted.
std::optional<Status> runProfiled(std::span<const Submission> group, const Waiting& waiting) {
  const bool wanted = std::any_of(group.begin(), group.end(), [](const Submission& submission) {
    const auto& profiler = localOf(submission).member().profiler;
    return profiler && profiler->mask() != 0;
  });
  if (wanted) {
    ProfiledApi events(group);
    return runTogether(group, waiting, &events);
  }
  for (const Submission& submission : group)
    ++localOf(submission).member().callsTold[static_cast<std::size_t>(submission.call.operation)];
  return {};
}

Status LocalCommunicator::check(std::span<const Submission> group) {
  bool toOneself = false;
  for (const Submission& submission : group) {
    LocalMember& member = localOf(submission).member();
    if (const Status possible = checkCall(member, submission.call); !possible) return possible;
    toOneself = toOneself || isToOneself(member, submission.call);
  }
  if (!toOneself) return {};
  GroupRun run(SystemClock::instance());
  for (const Submission& submission : group)
    if (const Status possible = run.add(localOf(submission).member(), submission.call); !possible) return possible;
  return run.checkOwnMessages();
}

Status LocalCommunicator::run(const Call& call) {
  const EngineHooks& hooks = member_.hooks;
  if (!hooks.calls && !hooks.hold && !member_.profiler && !isPointToPoint(call.operation)) [[likely]] {
    if (auto done = runAlone(member_, call, {*waiter_})) return std::move(*done);
  }
  const Submission submission{.engine = this, .call = call};
  return LocalCommunicator::run({&submission, 1});
}

Status LocalCommunicator::run(std::span<const Submission> group) {
  if (group.empty()) return {};
  const bool patient =
      std::none_of(group.begin(), group.end(), [](const Submission& submission) { return submission.besideComputing; });
  const Waiting waiting{*waiter_, patient};
  if (hasProfiler(group)) [[unlikely]] {
    if (auto done = runProfiled(group, waiting)) return std::move(*done);
  }
  if (auto done = runShortWay(group, waiting)) return std::move(*done);
  return runTogether(group, waiting);
}

/// Communicators work side by side; the calls of one follow each other.
Result<double> LocalCommunicator::estimate(std::span<const Submission> group) {
  std::map<const Engine*, double> sums;
  double longest = 0;
  for (const Submission& submission : group) {
    LocalCommunicator& local = localOf(submission);
    double& sum = sums[&local];
    sum += estimatedMicroseconds({local.size(), local.sharesMemoryWithAll()}, submission.call);
    longest = std::max(longest, sum);
  }
  return longest;
}

}  // namespace

Result<std::unique_ptr<HostCommunicator>> HostCommunicator::create(
    std::shared_ptr<transport::Reactor> reactor, std::shared_ptr<bootstrap::CommunicatorNetwork> network, int device,
    const EngineHooks& hooks, std::string extra, const CommunicatorWish& wish) {
  auto choice = NetworkChoice::choose(network->id());
  if (!choice) return choice.error();
  DirectSetup direct(network->rank(), network->size());
  const auto offers = exchangeOffers(*reactor, *network, device, std::move(extra), wish, *choice, direct);
  if (!offers) return offers.error();
  choice->agree(*offers);
  direct.attach(*offers);
  MemberShape shape = agreedShape(*network, *offers);
  auto tuning = agreedTuning(*offers, shape.extent);
  if (!tuning) return tuning.error();
  shape.tuning = std::move(*tuning);
  std::vector<MemberInfo> members;
  for (const MemberOffer& offer : *offers) members.push_back(offer.info);
  auto ports = choice->ports(reactor, *network, peersOf(members));
  if (!ports) return ports.error();
  auto communicator =
      std::make_unique<LocalCommunicator>(reactor, network, std::move(members), std::move(*ports), shape, hooks);
  LocalMember& member = communicator->member();
  TunerSetup tuner(network->id(), communicator->members());
  auto votes = network->allGather(fmt::format("{}\n{}", direct.vote(), tuner.vote()), parameters::initTimeout.value());
  if (!votes) return votes.error();
  member.tuner = tuner.agree(*votes);
  member.direct = direct.agree(*votes);
  member.profiler = plugin::processProfiler().open(profiledFacts(*communicator, wish.name));
  communicator->beginOneSided(std::move(reactor));
  describe(communicator->member(), communicator->members());
  return std::unique_ptr<HostCommunicator>(std::move(communicator));
}

}  // namespace falcon::collectives
