// Joining a communicator: meet at the rendezvous, then form the star.
#include <atomic>
#include <condition_variable>
#include <mutex>
#include <thread>
#include <utility>

#include "base/first_time.h"
#include "base/log.h"
#include "base/parameters.h"
#include "base/per_process.h"
#include "bootstrap/make_unique_id.h"
#include "bootstrap/random.h"
#include "bootstrap/rendezvous.h"
#include "bootstrap/star_network.h"
#include "transport/descriptor_limit.h"

namespace falcon::bootstrap {
namespace {

using Instant = std::chrono::steady_clock::time_point;

constexpr std::size_t longestReason = 1000;  // of what goes into a greeting

constexpr auto shortageLimit = 5s;                        // a moment's want of descriptors should not end a job
constexpr auto takenLimit = 30s;                          // how long another one's port is tried again
constexpr auto remindTime = 5s;                           // from then on nobody waits without a word
constexpr auto partingTime = 2s;                          // for the others to hear the answer
constexpr auto othersLimit = transport::withdrawalLimit;  // or that rank 0 cannot take part
constexpr int listenersNeeds = 10;                        // descriptors, to tell some ranks

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

/// Ends what is not `gone` within `limit`.
void endWithin(Nanoseconds limit, const std::future<void>& gone, transport::Reactor& reactor, std::uint64_t key) {
  if (gone.wait_for(limit) == std::future_status::timeout) reactor.forget(transport::Purpose::rendezvous, key);
}

/// Rank 0 has not what it takes to hold the rendezvous, or to take part: who comes soon hears it.
void refuseOthers(const UniqueId& id, int size, const Error& why) {
  transport::withDescriptorsOfItsOwn(listenersNeeds, [&] {
    const auto reactor = transport::makeReactor(id.address);
    if (!reactor) return;
    const auto opened = Rendezvous::open(*reactor, id, othersLimit);
    if (const auto rendezvous = opened.rendezvous.lock()) rendezvous->rankZeroFailed(size, why);
    endWithin(othersLimit, opened.gone, **reactor, id.key);
  });
}

constinit PerProcess<std::atomic<int>> openOnes;  // of the next class

/// The rendezvous that rank 0 opens itself, on the port that the environment names.
class OwnRendezvous {
 public:
  /// Who gives up hears why there was none until then.
  static Result<std::unique_ptr<OwnRendezvous>> open(const UniqueId& id, int size, Instant deadline,
                                                     const std::function<bool()>& givenUp) {
    Instant since = std::chrono::steady_clock::now();
    bool reminded = false;
    while (true) {
      bool portTaken = false;
      auto reactor = transport::makeReactor(id.address, &portTaken);
      if (reactor) {
        auto own = std::make_unique<OwnRendezvous>();
        ++openOnes.get();
        own->opened_ = Rendezvous::open(*reactor, id, deadline - std::chrono::steady_clock::now());
        own->reactor_ = std::move(*reactor);
        own->key_ = id.key;
        return own;
      }
      const Instant now = std::chrono::steady_clock::now();
      // By this process: another of its communicators is being made there, which takes the time that it takes.
      if (portTaken && openOnes.get() > 0) since = now;
      const bool shortage = reactor.error().code() == ErrorCode::system && !portTaken;
      const bool mayPass = (portTaken && now - since < takenLimit) || (shortage && now - since < shortageLimit);
      if (portTaken && now - since >= remindTime && !std::exchange(reminded, true))
        log::warn("rank 0 cannot open the rendezvous that {} names yet, and tries for {:.0f} s more: {}",
                  variableOf(id), seconds(std::min<Nanoseconds>(takenLimit - (now - since), deadline - now)),
                  reactor.error().message());
      const bool given = givenUp();
      if (!mayPass || given || now >= deadline) {
        Error why(reactor.error().code(),
                  fmt::format("rank 0 cannot open the rendezvous that {} names: {}{}", variableOf(id),
                              reactor.error().message(),
                              shortage ? ""
                                       : "; name an address of its host and a port that is free there, the same on all "
                                         "ranks"));
        if (given) return why;
        if (shortage) refuseOthers(id, size, why);
        return log::decided(std::move(why));
      }
      std::this_thread::sleep_for(20ms);
    }
  }
  ~OwnRendezvous() {
    endWithin(patience_, opened_.gone, *reactor_, key_);
    --openOnes.get();
  }
  /// This rank does not take part. That goes over no connection, for which there may be no descriptor. Those who are on
  /// their way have `patience` to come and hear it, too.
  void failed(int size, const Error& why, Nanoseconds patience) {
    patience_ = patience;
    const auto rendezvous = opened_.rendezvous.lock();
    if (rendezvous) rendezvous->rankZeroFailed(size, why);
  }

 private:
  std::shared_ptr<transport::Reactor> reactor_;
  std::uint64_t key_ = 0;
  Rendezvous::Opened opened_;
  Nanoseconds patience_ = partingTime;
};

/// What a rank says that looks for a rendezvous at a fixed address and finds none: once each, after some seconds.
class Reminder {
 public:
  Reminder(const UniqueId& id, Rank rank, Instant deadline) : id_(id), rank_(rank), deadline_(deadline) {}

  void look(transport::Listener seen) {
    const Instant now = std::chrono::steady_clock::now();
    const bool isNobodyThere = seen == transport::Listener::none;
    if (isNobodyThere != wasNobodyThere_) since_ = now;  // rank 0 may just have come
    wasNobodyThere_ = isNobodyThere;
    if (now - since_ < remindTime || std::exchange(isNobodyThere ? hasSaidNobody_ : hasSaidWho_, true)) return;
    const std::string where = fmt::format("rank {} has not met rank 0 at {} ({}) yet, and tries for {:.0f} s more",
                                          rank_, id_.address.text(), variableOf(id_), seconds(deadline_ - now));
    if (isNobodyThere) return log::info("{}: nobody listens there", where);
    log::notice("{}: what listens there {}; another program may have that port, or rank 0 be stopped", where,
                seen == transport::Listener::silent ? "does not answer" : "hangs up");
  }

 private:
  const UniqueId id_;
  const Rank rank_;
  const Instant deadline_;
  Instant since_ = std::chrono::steady_clock::now();  // it has been so
  bool wasNobodyThere_ = false;
  bool hasSaidNobody_ = false, hasSaidWho_ = false;
};

constexpr const char* whyOver =
    ": that is over, because its communicator has been made or has failed (every communicator needs a new unique "
    "id), or because the process that made the unique id has ended";

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
  if (rank == 0 && hasFixedAddress(id) && openOnes.get() == 0)
    return refuseOthers(id, size, Error::remote("rank 0 cannot take part: {}", why.message()));
  const JoinRequest request{size, thisMember({}), why.message().substr(0, longestReason)};
  transport::withdraw(id.address, {transport::Purpose::rendezvous, id.key, id.secret, rank, request.encode()},
                      transport::withdrawalLimit);
}

namespace {

/// A rank's way to its communicator, once the rendezvous is open, or somebody else's to open.
struct Way {
  const std::shared_ptr<transport::Reactor>& reactor;
  const UniqueId& id;
  const Rank rank;
  const int size;
  const Instant deadline;
  const bool isHost;  ///< the rendezvous at the fixed address is this rank's own
  const std::function<bool()>& givenUp;
  const std::function<void()>& met;
  std::optional<Visit> visit{};

  Nanoseconds left() const { return deadline - std::chrono::steady_clock::now(); }
  Result<std::shared_ptr<CommunicatorNetwork>> go();
};

Result<std::shared_ptr<CommunicatorNetwork>> Way::go() {
  const auto gaveUp = Error::remote("rank {} gave up while the communicator was made", rank);
  const bool fixed = hasFixedAddress(id);

  const SocketAddress here = reactor->address();
  const transport::Hello hello{transport::Purpose::rendezvous, id.key, id.secret, rank,
                               JoinRequest{size, thisMember(here)}.encode()};
  auto seen = transport::Listener::none;
  Reminder reminder(id, rank, deadline);
  const auto isGivenUp = [&] {
    if (fixed && !isHost) reminder.look(seen);
    return givenUp();
  };
  while (true) {
    visit.reset();
    auto socket = transport::connectWithHello(here, id.address, hello, left(),
                                              fixed ? Nanoseconds::max() : transport::goneLimit, isGivenUp, &seen);
    if (isGivenUp()) return gaveUp;
    if (!socket && seen != transport::Listener::hungUp) {
      // Nobody else can say it: without a proof this rank is a stranger, whose coming and going ends nothing.
      if (socket.error().code() == ErrorCode::system && !isHost) withdraw(id, rank, size, socket.error());
      if (socket.error().code() != ErrorCode::invalidUsage)
        return Error(socket.error().code(),
                     fmt::format("rank {} cannot reach the rendezvous: {}{}", rank, socket.error().message(),
                                 fixed || socket.error().code() == ErrorCode::system ? "" : whyOver));
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
          Error::remote("rank {} of {} was hung up on by the rendezvous {}{}", rank, size, id.address.text(), whyOver));
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

}  // namespace

Result<std::shared_ptr<CommunicatorNetwork>> join(std::shared_ptr<transport::Reactor> reactor, const UniqueId& id,
                                                  Rank rank, int size, Nanoseconds limit,
                                                  const std::function<bool()>& givenUp,
                                                  const std::function<void()>& met) {
  if (size < 1 || rank < 0 || rank >= size)
    return log::decided(Error::invalidArgument("rank {} does not fit into a communicator of {}", rank, size));
  const Instant deadline = std::chrono::steady_clock::now() + limit;
  if (size == 1) {
    reactor->forget(transport::Purpose::rendezvous, id.key);  // nobody else will come
    return aloneNetwork();
  }

  std::unique_ptr<OwnRendezvous> own;
  if (rank == 0) {
    // Everyone's visit to the rendezvous, and two connections of everyone to the center of the star.
    // Where there is no room this says so, and goes on: who then cannot be let in is told, and so are all others.
    (void)transport::reserveDescriptors(static_cast<std::size_t>(size) * 3,
                                        fmt::format("rank 0 of a communicator of {} ranks", size));
  }
  if (rank == 0 && hasFixedAddress(id)) {
    sayWithoutSecret();
    auto opened = OwnRendezvous::open(id, size, deadline, givenUp);
    if (!opened) return opened.error();
    own = std::move(*opened);
  }

  Way way{reactor, id, rank, size, deadline, own != nullptr, givenUp, met};
  auto network = way.go();
  if (own && !network) own->failed(size, network.error(), givenUp() ? partingTime : othersLimit);
  return network;
}

}  // namespace falcon::bootstrap
