// Joining a communicator: meet at the rendezvous, then form the star.
#include <condition_variable>
#include <mutex>
#include <thread>

#include "base/first_time.h"
#include "base/log.h"
#include "base/parameters.h"
#include "bootstrap/random.h"
#include "bootstrap/rendezvous.h"
#include "bootstrap/star_network.h"
#include "transport/descriptor_limit.h"

namespace falcon::bootstrap {
namespace {

using Instant = std::chrono::steady_clock::time_point;

constexpr std::size_t longestReason = 1000;  // of what goes into a greeting

/// One visit to the rendezvous. The connection stays open until the star is formed: should another rank die meanwhile,
/// the rendezvous tells.
class Visit {
 public:
  Visit(std::shared_ptr<transport::Reactor> reactor, FileDescriptor socket)
      : channel_(std::make_shared<MessageChannel>(std::move(reactor), std::move(socket))) {
    channel_->start([this](std::string_view bytes) { receive(bytes); }, [this](const std::string&) { closed(); });
  }
  ~Visit() { channel_->close(); }  // afterwards no handler runs

  /// Nothing: the rendezvous hung up without an answer, or did not answer in time, or this rank gave up.
  std::optional<JoinAnswer> answer(Instant deadline, const std::function<bool()>& givenUp) {
    std::unique_lock lock(mutex_);
    while (!first_ && !closed_ && std::chrono::steady_clock::now() < deadline && !givenUp())
      changed_.wait_until(lock, std::min(deadline, std::chrono::steady_clock::now() + 100ms));
    return first_;
  }
  std::optional<Error> laterRefusal() {
    const std::lock_guard lock(mutex_);
    return refusal_;
  }
  bool hungUp() {
    const std::lock_guard lock(mutex_);
    return closed_;
  }
  void tellFormed() { channel_->send("formed"); }

 private:
  void receive(std::string_view bytes) {
    JoinAnswer answer;
    const bool fits = JoinAnswer::decode(bytes, answer);
    const std::lock_guard lock(mutex_);
    if (!fits) answer = {JoinAnswer::Kind::refused, 0, {}, ErrorCode::remote, "the rendezvous answers nonsense"};
    if (first_)
      refusal_ = Error(answer.code, answer.text);
    else
      first_ = std::move(answer);
    changed_.notify_all();
  }
  void closed() {
    const std::lock_guard lock(mutex_);
    closed_ = true;
    changed_.notify_all();
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::optional<JoinAnswer> first_;
  std::optional<Error> refusal_;
  bool closed_ = false;
  const std::shared_ptr<MessageChannel> channel_;
};

/// The variable that names the address of the rendezvous, for who has to set it otherwise.
const char* variableOf(const UniqueId& id) {
  const auto falcons = SocketAddress::parse(parameters::falconCommId.value());
  return falcons && falcons->text() == id.address.text() ? parameters::falconCommId.name() : parameters::commId.name();
}

/// The rendezvous that rank 0 opens itself, on the port that the environment names.
class OwnRendezvous {
 public:
  /// Who gives up hears why there was none until then.
  static Result<std::unique_ptr<OwnRendezvous>> open(const UniqueId& id, Instant deadline,
                                                     const std::function<bool()>& givenUp) {
    while (true) {
      // The last communicator's rendezvous on this port may still be closing.
      auto reactor = transport::makeReactor(id.address);
      if (reactor) {
        auto own = std::make_unique<OwnRendezvous>();
        own->gone_ = Rendezvous::open(*reactor, id, deadline - std::chrono::steady_clock::now());
        own->reactor_ = std::move(*reactor);
        own->key_ = id.key;
        return own;
      }
      const bool mayPass = reactor.error().code() == ErrorCode::system;
      const bool given = givenUp();
      if (!mayPass || given || std::chrono::steady_clock::now() >= deadline) {
        Error why(reactor.error().code(),
                  fmt::format("rank 0 cannot open the rendezvous that {} names: {}; name an address of its host and "
                              "a port that is free there, the same on all ranks",
                              variableOf(id), reactor.error().message()));
        return given ? why : log::decided(std::move(why));
      }
      std::this_thread::sleep_for(20ms);
    }
  }
  /// Gives the others a moment to hear the answer.
  ~OwnRendezvous() {
    if (gone_.wait_for(2s) == std::future_status::timeout) reactor_->forget(transport::Purpose::rendezvous, key_);
  }

 private:
  std::shared_ptr<transport::Reactor> reactor_;
  std::uint64_t key_ = 0;
  std::future<void> gone_;
};

/// Once a process.
void sayWithoutSecret() {
  if (parameters::secret.isSet() || !firstTime(parameters::secret.name())) return;
  log::notice(
      "the environment names the rendezvous and NCCL_FALCON_SECRET is not set: anybody who reaches the address can "
      "join "
      "the job; set it to the same value on all ranks");
}

}  // namespace

void withdraw(const UniqueId& id, Rank rank, int size, const Error& why) {
  const JoinRequest request{size, thisMember({}), why.message().substr(0, longestReason)};
  transport::withdraw(id.address, {transport::Purpose::rendezvous, id.key, id.secret, rank, request.encode()},
                      transport::withdrawalLimit);
}

Result<std::shared_ptr<CommunicatorNetwork>> join(std::shared_ptr<transport::Reactor> reactor, const UniqueId& id,
                                                  Rank rank, int size, Nanoseconds limit,
                                                  const std::function<bool()>& givenUp,
                                                  const std::function<void()>& met) {
  if (size < 1 || rank < 0 || rank >= size)
    return log::decided(Error::invalidArgument("rank {} does not fit into a communicator of {}", rank, size));
  const Instant deadline = std::chrono::steady_clock::now() + limit;
  const auto left = [&] { return deadline - std::chrono::steady_clock::now(); };
  if (size == 1) {
    reactor->forget(transport::Purpose::rendezvous, id.key);  // nobody else will come
    const auto communicator = randomNumber();
    if (!communicator) return log::decided(communicator.error());
    return aloneNetwork(*communicator);
  }

  const auto gaveUp = Error::remote("rank {} gave up while the communicator was made", rank);
  const bool fixed = hasFixedAddress(id);
  std::unique_ptr<OwnRendezvous> own;
  if (rank == 0) {
    // Everyone's visit to the rendezvous, and two connections of everyone to the center of the star.
    // Where there is no room this says so, and goes on: who then cannot be let in is told, and so are all others.
    (void)transport::reserveDescriptors(static_cast<std::size_t>(size) * 3,
                                        fmt::format("rank 0 of a communicator of {} ranks", size));
  }
  if (fixed && rank == 0) {
    sayWithoutSecret();
    auto opened = OwnRendezvous::open(id, deadline, givenUp);
    if (!opened) return opened.error();
    own = std::move(*opened);
  }

  const SocketAddress here = reactor->address();
  const transport::Hello hello{transport::Purpose::rendezvous, id.key, id.secret, rank,
                               JoinRequest{size, thisMember(here)}.encode()};
  while (true) {
    bool turnedAway = false;
    auto socket = transport::connectWithHello(here, id.address, hello, left(),
                                              fixed ? Nanoseconds::max() : transport::goneLimit, givenUp, &turnedAway);
    if (givenUp()) return gaveUp;
    if (!socket && !turnedAway) {
      // Nobody else can say it: without a proof this rank is a stranger, whose coming and going ends nothing.
      if (socket.error().code() == ErrorCode::system) withdraw(id, rank, size, socket.error());
      if (socket.error().code() != ErrorCode::invalidUsage)
        return Error(socket.error().code(),
                     fmt::format("rank {} cannot reach the rendezvous: {}", rank, socket.error().message()));
      return log::decided(Error::invalidUsage(
          "rank {} does not join, because it and the rendezvous at {} have different secrets ({})", rank,
          id.address.text(),
          fixed
              ? fmt::format("set NCCL_FALCON_SECRET to the same value on all ranks, or on none; or another job, or a "
                            "stranger, has that port: name another in {}",
                            variableOf(id))
              : "give all ranks the unique id as ncclGetUniqueId made it; or the process that made it has ended, and a "
                "stranger has its port"));
    }
    std::optional<Visit> visit;
    if (socket) visit.emplace(reactor, std::move(*socket));
    const auto answer = visit ? visit->answer(deadline, givenUp) : std::nullopt;
    if (givenUp()) return gaveUp;
    const bool hungUp = !visit || visit->hungUp();
    const bool late = std::chrono::steady_clock::now() >= deadline;
    // With a fixed address this may have been the rendezvous of the communicator before: the next one opens soon.
    const bool tooEarly = fixed && (answer ? answer->kind == JoinAnswer::Kind::over : hungUp);
    if (tooEarly && !late) {
      std::this_thread::sleep_for(20ms);
      continue;
    }
    if (!answer && hungUp)
      return log::decided(
          Error::remote("rank {} of {} was hung up on by the rendezvous {}: that is over, because its communicator has "
                        "been made or has failed (every communicator needs a new unique id), or because the process "
                        "that made the unique id has ended",
                        rank, size, id.address.text()));
    if (!answer)
      return log::decided(Error::remote(
          "rank {} waited in vain at the rendezvous {} for the other ranks of {}: not all came within the limit", rank,
          id.address.text(), size));
    if (answer->kind != JoinAnswer::Kind::table) return log::decided(Error(answer->code, answer->text));
    if (static_cast<int>(answer->members.size()) != size)
      return log::decided(
          Error::internal("the rendezvous' table has {} rows for {} ranks", answer->members.size(), size));
    met();
    // Of a fixed address that is used again and again every communicator has its own.
    const transport::Secret secret = derivedSecret(id.secret, "communicator", answer->communicator);
    auto network = StarNetwork::form(reactor, answer->communicator, secret, rank, answer->members, left(),
                                     [&] { return givenUp() ? std::optional(gaveUp) : visit->laterRefusal(); });
    if (network) visit->tellFormed();
    return network;
  }
}

}  // namespace falcon::bootstrap
