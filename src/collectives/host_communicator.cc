#include "collectives/host_communicator.h"

#include <algorithm>

#include "base/log.h"
#include "base/parameters.h"
#include "collectives/connected_one_sided.h"
#include "collectives/direct_one_sided.h"
#include "collectives/direct_setup.h"
#include "collectives/group_driver.h"
#include "collectives/member_info.h"
#include "collectives/network_choice.h"
#include "collectives/one_sided.h"
#include "collectives/single_call.h"
#include "topology/ring_order.h"
#include "transport/chunk_size.h"

namespace falcon::collectives {
namespace {

// As NCCL has.
constexpr int mostChannelsEver = 64;

std::vector<transport::Peer> peersOf(const std::vector<MemberInfo>& members) {
  std::vector<transport::Peer> peers;
  for (const MemberInfo& member : members) peers.push_back(member.peer);
  return peers;
}

class LocalCommunicator final : public HostCommunicator {
 public:
  LocalCommunicator(std::shared_ptr<transport::Reactor> reactor,
                    std::shared_ptr<bootstrap::CommunicatorNetwork> network, std::vector<MemberInfo> members,
                    std::unique_ptr<transport::Ports> ports, const MemberShape& shape, const EngineHooks& hooks,
                    ChannelWish channels)
      : reactor_(std::move(reactor)),
        network_(std::move(network)),
        members_(std::move(members)),
        ports_(std::move(ports)),
        channels_(channels),
        waiter_(transport::makeWaiter()),
        member_(shape, *ports_, *network_, hooks, topology::ringOrder(nodesOf(members_))) {
    network_->onFailure([](const Error&) { transport::ringOwnDoorbell(); });
  }

  EngineKind kind() const override { return EngineKind::host; }
  CommunicatorId id() const override { return network_->id(); }
  Rank rank() const override { return member_.shape.rank; }
  int size() const override { return member_.shape.size; }
  int device() const override { return members_[rank()].device; }

  Result<std::unique_ptr<Engine>> split(int color, int key) override;
  Status finalize() override { return member_.health(); }  // calls are complete when they return
  void abort() override;
  Status asyncError() const override;
  Result<std::unique_ptr<Engine>> shrink(std::span<const Rank> excluded, bool despiteFailure) override;
  Status revoke() override;
  std::uint64_t nextCollective() const override { return member_.nextCollective.load(std::memory_order_relaxed); }

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
  transport::Waiter& waiter() { return *waiter_; }

 private:
  /// The engine of a part of this communicator; null where this rank has no part.
  Result<std::unique_ptr<Engine>> childOver(std::shared_ptr<bootstrap::CommunicatorNetwork> network);

  const std::shared_ptr<transport::Reactor> reactor_;
  const std::shared_ptr<bootstrap::CommunicatorNetwork> network_;
  const std::vector<MemberInfo> members_;
  const std::shared_ptr<transport::Ports> ports_;
  const ChannelWish channels_;
  const std::unique_ptr<transport::Waiter> waiter_;
  mutable LocalMember member_;
  std::optional<OneSided> oneSided_;  // before it is handed out
};

Result<std::unique_ptr<Engine>> LocalCommunicator::split(int color, int key) {
  if (const Status sound = asyncError(); !sound) return sound.error();
  auto network = network_->split(color, key, parameters::initTimeout.value());
  if (!network) return network.error();
  return childOver(std::move(*network));
}

Result<std::unique_ptr<Engine>> LocalCommunicator::childOver(std::shared_ptr<bootstrap::CommunicatorNetwork> network) {
  if (!network) return std::unique_ptr<Engine>();
  auto made = create(reactor_, std::move(network), device(), member_.hooks, members_[rank()].extra, channels_);
  if (!made) return made.error();
  return std::unique_ptr<Engine>(std::move(*made));
}

Result<std::unique_ptr<Engine>> LocalCommunicator::shrink(std::span<const Rank> excluded, bool despiteFailure) {
  if (despiteFailure) {
    if (const Status stopped = revoke(); !stopped) return stopped.error();
  } else if (const Status sound = asyncError(); !sound) {
    return sound.error();
  }
  const auto broken = [&]() -> std::optional<Error> { return despiteFailure ? std::nullopt : network_->failure(); };
  auto network = network_->shrink(excluded, parameters::initTimeout.value(), broken);
  if (!network) return network.error();
  return childOver(std::move(*network));
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

void LocalCommunicator::abort() {
  member_.fail(Error::remote("rank {} aborted the communicator", rank()));
  transport::ringOwnDoorbell();
}

Result<std::vector<MemberOffer>> exchangeOffers(transport::Reactor& reactor, bootstrap::CommunicatorNetwork& network,
                                                int device, std::string extra, ChannelWish channels,
                                                const NetworkChoice& choice, DirectSetup& direct) {
  auto info = ownMemberInfo(reactor, device, std::move(extra));
  if (!info) return info.error();
  MemberOffer mine;
  mine.info = std::move(*info);
  mine.chunkBytes = static_cast<std::uint64_t>(parameters::bufferSize.value()) / transport::chunkSlots;
  // Beyond the most channels that a variable may ask for there is nothing to gain.
  const auto chosen = [](const IntegerParameter& parameter, int wish) {
    const bool wished = wish > 0 && !parameter.isSet();
    return wished ? std::min(wish, mostChannelsEver) : static_cast<int>(parameter.value());
  };
  mine.fewestChannels = chosen(parameters::minChannels, channels.fewest);
  mine.mostChannels = chosen(parameters::maxChannels, channels.most);
  // Who asks for many and sets no limit means it.
  if (channels.most <= 0 && !parameters::maxChannels.isSet())
    mine.mostChannels = std::max(mine.mostChannels, mine.fewestChannels);
  mine.choseChannels =
      channels.fewest > 0 || channels.most > 0 || parameters::minChannels.isSet() || parameters::maxChannels.isSet();
  mine.cores = coresOfThisProcess();
  if (const auto quota = quotaOfThisProcess()) mine.quota = *quota;
  mine.preferred = preferencesFromEnvironment();
  if (network.rank() == 0 && network.size() > 1) mine.tuning = tuningTextFromEnvironment();
  mine.checksCalls = parameters::checkCalls.value();
  choice.offer(mine);
  direct.offer(mine);
  const auto gathered = network.allGather(mine.encode(), parameters::initTimeout.value());
  if (!gathered) return gathered.error();
  std::vector<MemberOffer> offers;
  for (const std::string& bytes : *gathered) {
    auto offer = MemberOffer::decode(bytes);
    if (!offer) return offer.error();
    offers.push_back(std::move(*offer));
  }
  return offers;
}

/// What suits all members, whatever their environments say.
MemberShape agreedShape(const bootstrap::CommunicatorNetwork& network, const std::vector<MemberOffer>& offers) {
  MemberShape shape;
  shape.rank = network.rank();
  shape.size = network.size();
  shape.chunkBytes = offers[0].chunkBytes;
  shape.mostChannels = offers[0].mostChannels;
  shape.checksCalls = true;
  for (const MemberOffer& offer : offers) {
    shape.chunkBytes = std::min<std::size_t>(shape.chunkBytes, offer.chunkBytes);
    shape.mostChannels = std::min(shape.mostChannels, offer.mostChannels);
    shape.fewestChannels = std::max(shape.fewestChannels, offer.fewestChannels);
    shape.preferred = agreedPreferences(shape.preferred, offer.preferred);
    shape.checksCalls = shape.checksCalls && offer.checksCalls;
  }
  shape.place = shareNode(offers) ? Place::node : Place::network;
  const bool chosen = std::any_of(offers.begin(), offers.end(), [](const auto& offer) { return offer.choseChannels; });
  // A second channel doubles the messages, and with them the switches between the ranks of a core: ring AllGather of
  // 1 MiB among 8 ranks on 2 cores 1.5 ms by one, 3.5 ms by two.
  if (!chosen && shape.place == Place::network && mostRanksPerCore(offers) > 2) shape.mostChannels = 1;
  shape.fewestChannels = std::min(shape.fewestChannels, shape.mostChannels);
  const auto chunkOf = [&](transport::Lane lane) {
    return transport::chunkBytesFor(lane, shape.chunkBytes * transport::chunkSlots, shape.size);
  };
  shape.messageChunkBytes = chunkOf(transport::Lane::peerToPeer);
  shape.directChunkBytes = chunkOf(transport::Lane::direct);
  if (!shape.checksCalls && parameters::checkCalls.value())
    log::notice("NCCL_FALCON_CHECK=1 has no effect: not all ranks of the communicator have it set");
  return shape;
}

/// For people who wonder what their settings have become.
void describe(const LocalMember& member, const std::vector<MemberInfo>& members) {
  if (!log::on(log::Level::info)) return;
  const std::vector<int> nodes = nodesOf(members);
  const MemberShape& shape = member.shape;
  log::info("communicator {:016x}: {} nodes, {} to {} channels, buffers of {} bytes, {}", member.id(),
            *std::max_element(nodes.begin(), nodes.end()) + 1, shape.fewestChannels, shape.mostChannels,
            shape.chunkBytes * transport::chunkSlots,
            !member.direct                 ? "connections only"
            : member.direct->readsMemory() ? "ranks read each other's memory"
                                           : "short messages by a shared board");
}

/// Rank 0's rows for where the ranks are; null: the built-in tables. An error where this rank's library cannot follow
/// them: it would choose otherwise than the others, and wait for ever.
Result<std::shared_ptr<const Tuning>> agreedTuning(const std::vector<MemberOffer>& offers, Place place) {
  if (offers[0].tuning.empty()) return std::shared_ptr<const Tuning>();
  auto tuning = parseTuning(offers[0].tuning, place);
  if (tuning) {
    log::info("the algorithms follow rank 0's NCCL_FALCON_TUNING_FILE");
    return std::make_shared<const Tuning>(std::move(*tuning));
  }
  return log::decided(Error::remote(
      "rank 0's NCCL_FALCON_TUNING_FILE cannot be followed here: {}. Use the same library on every rank, or unset it",
      tuning.error().message()));
}

LocalCommunicator& localOf(const Submission& submission) {
  return static_cast<LocalCommunicator&>(*submission.engine);
}

/// The long way, which any calls can go: all side by side.
Status runTogether(std::span<const Submission> submissions, const Waiting& waiting) {
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
  for (const Submission& submission : submissions) {
    status = run.add(localOf(submission).member(), submission.call);
    if (!status) break;
  }
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

}  // namespace

Result<std::unique_ptr<HostCommunicator>> HostCommunicator::create(
    std::shared_ptr<transport::Reactor> reactor, std::shared_ptr<bootstrap::CommunicatorNetwork> network, int device,
    const EngineHooks& hooks, std::string extra, ChannelWish channels) {
  auto choice = NetworkChoice::choose(network->id());
  if (!choice) return choice.error();
  DirectSetup direct(network->rank(), network->size());
  const auto offers = exchangeOffers(*reactor, *network, device, std::move(extra), channels, *choice, direct);
  if (!offers) return offers.error();
  choice->agree(*offers);
  direct.attach(*offers);
  MemberShape shape = agreedShape(*network, *offers);
  auto tuning = agreedTuning(*offers, shape.place);
  if (!tuning) return tuning.error();
  shape.tuning = std::move(*tuning);
  std::vector<MemberInfo> members;
  for (const MemberOffer& offer : *offers) members.push_back(offer.info);
  auto ports = choice->ports(reactor, *network, peersOf(members));
  if (!ports) return ports.error();
  auto communicator = std::make_unique<LocalCommunicator>(reactor, network, std::move(members), std::move(*ports),
                                                          shape, hooks, channels);
  const auto votes = network->allGather(direct.vote(), parameters::initTimeout.value());
  if (!votes) return votes.error();
  communicator->member().direct = direct.agree(*votes);
  communicator->beginOneSided(std::move(reactor));
  describe(communicator->member(), communicator->members());
  return std::unique_ptr<HostCommunicator>(std::move(communicator));
}

Status checkGroup(std::span<const Submission> submissions) {
  bool toOneself = false;
  for (const Submission& submission : submissions) {
    LocalMember& member = localOf(submission).member();
    if (const Status possible = checkCall(member, submission.call); !possible) return possible;
    toOneself = toOneself || isToOneself(member, submission.call);
  }
  if (!toOneself) return {};
  GroupRun run(SystemClock::instance());
  for (const Submission& submission : submissions)
    if (const Status possible = run.add(localOf(submission).member(), submission.call); !possible) return possible;
  return run.checkOwnMessages();
}

Status runOne(Engine& engine, const Call& call) {
  auto& communicator = static_cast<LocalCommunicator&>(engine);
  const EngineHooks& hooks = communicator.member().hooks;
  if (!hooks.calls && !hooks.hold && !isPointToPoint(call.operation)) [[likely]] {
    if (auto done = runAlone(communicator.member(), call, {communicator.waiter()})) return std::move(*done);
  }
  const Submission submission{.engine = &engine, .call = call};
  return runGroup({&submission, 1});
}

Status runGroup(std::span<const Submission> submissions) {
  if (submissions.empty()) return {};
  const bool patient = std::none_of(submissions.begin(), submissions.end(),
                                    [](const Submission& submission) { return submission.besideComputing; });
  const Waiting waiting{localOf(submissions[0]).waiter(), patient};
  if (auto done = runShortWay(submissions, waiting)) return std::move(*done);
  return runTogether(submissions, waiting);
}

}  // namespace falcon::collectives
