#include "bootstrap/star_member.h"

#include <fcntl.h>

#include <utility>

#include "base/log.h"
#include "bootstrap/star_center.h"
#include "transport/descriptor_limit.h"
#include "transport/fork_guard.h"

namespace falcon::bootstrap {

using Kind = StarMessage::Kind;

namespace {

constexpr auto goodbyeLimit = 5s;  // rank 0 may be short of processor time
constexpr std::size_t maximumContribution = 1 << 20;
/// Mostly all processes end together, and no center is needed any more.
constexpr Nanoseconds successionPause = 500ms;

std::string text(Nanoseconds duration) {
  return fmt::format("{:.1f} s", seconds(duration));
}

}  // namespace

StarMember::StarMember(std::shared_ptr<transport::Reactor> reactor, CommunicatorId id, const transport::Secret& secret,
                       Rank rank, std::vector<Member> members)
    : reactor_(std::move(reactor)), id_(id), secret_(secret), rank_(rank), members_(std::move(members)) {}

Status StarMember::connect(Nanoseconds limit, const std::function<std::optional<Error>()>& givenUp) {
  const auto deadline = std::chrono::steady_clock::now() + limit;
  transport::Hello hello{transport::Purpose::communicator, id_, secret_, rank_, {}};
  std::optional<Error> gaveUp;
  const auto isGivenUp = [&] { return (gaveUp = givenUp()).has_value(); };
  auto socket = transport::connectWithHello(reactor_->address(), members_[0].address, hello, limit,
                                            transport::goneLimit, isGivenUp);
  if (gaveUp) return *gaveUp;
  if (!socket) {
    if (socket.error().code() == ErrorCode::system) withdraw(socket.error());
    return Error(socket.error().code(),
                 fmt::format("{} cannot reach {}: {}", name(rank_), name(0), socket.error().message()));
  }
  auto channel = std::make_shared<MessageChannel>(reactor_, std::move(*socket));
  {
    const std::lock_guard lock(mutex_);
    channel_ = channel;
  }
  startOver(channel);
  if (rank_ != 0) {
    hello.purpose = transport::Purpose::pulse;
    auto idle =
        transport::connectWithHello(reactor_->address(), members_[0].address, hello,
                                    deadline - std::chrono::steady_clock::now(), transport::goneLimit, isGivenUp);
    if (gaveUp) return *gaveUp;
    if (!idle) return Error::remote("{} cannot reach {}: {}", name(rank_), name(0), idle.error().message());
    auto pulse = pulseOver(std::move(*idle));
    const std::lock_guard lock(mutex_);
    pulse_ = std::move(pulse);
  }
  Lock lock(mutex_);
  while (!started_ && !failure_.load()) {
    changed_.wait_for(lock, 100ms);
    if (started_) break;
    const bool late = std::chrono::steady_clock::now() >= deadline;
    lock.unlock();
    auto problem = givenUp();
    if (!problem && late)
      problem = log::decided(
          Error::remote("not all {} ranks connected to {} within {}", members_.size(), name(0), text(limit)));
    if (problem) {
      abort(problem->message());
      return *problem;
    }
    lock.lock();
  }
  if (const Error* broken = failure_.load()) return *broken;
  return {};
}

void StarMember::startOver(std::shared_ptr<MessageChannel> channel) {
  channel->start(
      [weak = weak_from_this()](std::string_view bytes) {
        if (const auto self = weak.lock()) self->receive(bytes);
      },
      [weak = weak_from_this(), center = center_](const std::string& why) {
        if (const auto self = weak.lock()) self->closed(center, why);
      });
}

std::unique_ptr<Pulse> StarMember::pulseOver(FileDescriptor socket) {
  return std::make_unique<Pulse>(reactor_, std::move(socket), [weak = weak_from_this(), center = center_] {
    if (const auto self = weak.lock()) self->closed(center, "its host fell silent");
  });
}

/// The others hear why it does not come.
void StarMember::withdraw(const Error& why) const {
  transport::withdraw(members_[0].address,
                      {transport::Purpose::communicator, id_, secret_, rank_, why.message().substr(0, 1000)},
                      transport::withdrawalLimit);
}

Result<std::vector<std::string>> StarMember::gather(std::string_view mine, Nanoseconds limit,
                                                    const std::function<std::optional<Error>()>& givenUp) {
  if (mine.size() > maximumContribution)
    return log::decided(Error::internal("a contribution of {} bytes to an all-gather is too long", mine.size()));
  const auto began = std::chrono::steady_clock::now(), deadline = began + limit;
  const std::lock_guard one(gatherMutex_);
  const std::uint64_t sequence = sequence_++;
  Lock lock(mutex_);
  if (const Error* broken = failure_.load()) return *broken;
  if (closed_ || inherited_) return log::decided(Error::remote("{} has left the communicator and ended", name(0)));
  channel_->send(StarMessage{Kind::gather, sequence, -1, {std::string(mine)}}.encode());
  const auto decided = [&] { return answers_.contains(sequence) || failure_.load() || closed_ || inherited_; };
  bool isLate = false;
  while (!decided() && !isLate) {
    if (!givenUp) {
      isLate = !changed_.wait_until(lock, deadline, decided);
    } else if (!changed_.wait_for(lock, 100ms, decided)) {
      lock.unlock();
      isLate = givenUp() || std::chrono::steady_clock::now() >= deadline;
      lock.lock();
    }
  }
  if (isLate && !decided()) {
    const std::string waited = text(std::chrono::steady_clock::now() - began);
    // The center knows who is missing, and ends the communicator for all: a gather done by some only cannot be
    // repeated.
    if (channel_) channel_->send(StarMessage{Kind::late, sequence, -1, {waited}}.encode());
    if (!changed_.wait_for(lock, 1s, decided)) {
      lock.unlock();
      fail(Error::remote("{} waited {} in vain for an answer of {}", name(rank_), waited, name(0)));
      lock.lock();
    }
  }
  if (const auto found = answers_.find(sequence); found != answers_.end()) {
    StarMessage answer = std::move(found->second);
    answers_.erase(found);
    if (answer.kind == Kind::gathered) return std::move(answer.texts);
    return log::decided(Error::remote("{}", answer.texts.empty() ? "" : answer.texts[0]));
  }
  if (const Error* broken = failure_.load()) return *broken;
  return log::decided(Error::remote("{} has left the communicator and ended", name(0)));
}

void StarMember::receive(std::string_view bytes) {
  reactorThread_.store(std::this_thread::get_id());
  StarMessage message;
  if (!StarMessage::decode(bytes, message))
    return fail(Error::remote("{} sent a message that makes no sense", name(0)));
  Lock lock(mutex_);
  switch (message.kind) {
    case Kind::start:
      started_ = true;
      break;
    case Kind::gathered:
      if (message.texts.size() != members_.size()) return;
      [[fallthrough]];
    case Kind::unavailable:
      answers_[message.sequence] = std::move(message);
      break;
    case Kind::left:
      return noteDeparture(std::move(lock), message.rank);
    case Kind::goodbyeDone:
      goodbyeDone_ = true;
      break;
    case Kind::failed:
      lock.unlock();
      return fail(Error::remote("{}", message.texts.empty() ? "" : message.texts[0]));
    default:
      return;
  }
  changed_.notify_all();
}

void StarMember::noteDeparture(Lock lock, Rank rank) {
  left_.insert(rank);
  if (rank == center_ && channel_) channel_->send(StarMessage{Kind::noted, 0, -1, {}}.encode());
  const auto departed = departed_;
  changed_.notify_all();
  lock.unlock();
  if (departed) departed(rank);
}

void StarMember::closed(Rank center, const std::string& why) {
  reactorThread_.store(std::this_thread::get_id());
  bool death;
  {
    const std::lock_guard lock(mutex_);
    if (center != center_ || closed_) return;
    closed_ = true;
    turnedAway_ = !started_ && !failure_.load();
    changed_.notify_all();
    if (leaving_) return;
    death = !left_.contains(center);
    if (!death) {
      if (!succession_)
        succession_ = std::make_unique<transport::Alarm>(reactor_, [weak = weak_from_this()] {
          if (const auto self = weak.lock()) self->findHeir();
        });
      succession_->set(successionPause);
    }
  }
  if (death) fail(Error::remote("{} died: {}", name(center), why));
}

/// The lowest rank after the last center's that has not left: all come to the same one, or find that it has ended, too.
void StarMember::findHeir() {
  std::unique_ptr<Pulse> old;  // ends after the lock is let go, as in leave()
  Lock lock(mutex_);
  if (leaving_) return;
  Rank heir = center_ + 1;
  while (heir < static_cast<Rank>(members_.size()) && left_.contains(heir)) ++heir;
  if (heir == static_cast<Rank>(members_.size())) return;
  center_ = heir;
  inherited_ = true;
  channel_.reset();
  old.swap(pulse_);
  if (!dialling_) dialling_ = std::make_shared<transport::Dialling>(reactor_);
  if (heir == rank_) {
    (void)transport::reserveDescriptors(2 * members_.size(), "whoever keeps watch over a communicator");
    StarCenter::inherit(reactor_, id_, secret_, members_, rank_, left_);
  }
  lock.unlock();
  dial(heir, transport::Purpose::communicator);
  if (heir != rank_) dial(heir, transport::Purpose::pulse);
}

void StarMember::dial(Rank heir, transport::Purpose purpose) {
  std::vector<transport::Dialling::Call> calls;
  calls.push_back({members_[static_cast<std::size_t>(heir)].address,
                   {purpose, id_, secret_, rank_, {}},
                   name(heir),
                   [weak = weak_from_this(), heir, purpose](const transport::SharedSocket& socket) {
                     // Who has dialled keeps its own until it is told.
                     FileDescriptor own = newDescriptor(fcntl(socket->get(), F_DUPFD_CLOEXEC, 3));
                     const auto self = weak.lock();
                     if (!self) return;
                     if (!own) return self->missed(heir);
                     transport::closeInForkedChildren(own.get());
                     self->reached(heir, purpose, std::move(own));
                   },
                   [weak = weak_from_this(), heir](const Error&) {
                     if (const auto self = weak.lock()) self->missed(heir);
                   }});
  std::shared_ptr<transport::Dialling> dialling;
  {
    const std::lock_guard lock(mutex_);
    dialling = dialling_;
  }
  // Without a socket this rank goes on without a center, and says why.
  if (dialling) (void)dialling->begin(std::move(calls));
}

void StarMember::reached(Rank heir, transport::Purpose purpose, FileDescriptor socket) {
  Lock lock(mutex_);
  if (leaving_ || heir != center_) return;
  if (purpose == transport::Purpose::pulse) {
    pulse_ = pulseOver(std::move(socket));
    return;
  }
  const auto channel = std::make_shared<MessageChannel>(reactor_, std::move(socket));
  channel_ = channel;
  closed_ = false;
  // What broke it meanwhile nobody has heard yet.
  if (const Error* broken = failure_.load())
    channel->send(StarMessage{Kind::abort, 0, -1, {std::string(broken->message())}}.encode());
  lock.unlock();
  startOver(channel);
}

/// It has ended, or left and knows nothing of being the heir: the next one, then.
void StarMember::missed(Rank heir) {
  const std::lock_guard lock(mutex_);
  if (leaving_ || heir != center_) return;
  left_.insert(heir);
  succession_->set(successionPause);
}

void StarMember::fail(Error error) {
  {
    const std::lock_guard lock(mutex_);
    if (failure_.load() || leaving_) return;
    failureOwner_ = std::make_unique<const Error>(log::decided(std::move(error)));
    failure_.store(failureOwner_.get(), std::memory_order_release);
    changed_.notify_all();
  }
  reactor_->post([weak = weak_from_this()] {
    if (const auto self = weak.lock()) self->runHandler();
  });
}

void StarMember::runHandler() {
  Lock lock(mutex_);
  if (!handler_) return;
  auto handler = std::move(handler_);
  handler_ = nullptr;
  handlerThread_ = std::this_thread::get_id();
  lock.unlock();
  handler(*failure_.load());
  handler = nullptr;
  lock.lock();
  handlerThread_ = {};
  changed_.notify_all();
}

void StarMember::onFailure(std::function<void(const Error&)> handler) {
  Lock lock(mutex_);
  if (handlerThread_ != std::this_thread::get_id())
    changed_.wait(lock, [&] { return handlerThread_ == std::thread::id{}; });
  handler_.swap(handler);  // the old one is destroyed after the lock is let go
  const bool broken = failure_.load() != nullptr;
  lock.unlock();
  if (!broken) return;
  reactor_->post([weak = weak_from_this()] {
    if (const auto self = weak.lock()) self->runHandler();
  });
}

void StarMember::abort(std::string_view reason) {
  {
    const std::lock_guard lock(mutex_);
    if (failure_.load() || leaving_) return;
    if (channel_) channel_->send(StarMessage{Kind::abort, 0, -1, {std::string(reason)}}.encode());
  }
  fail(Error::remote("{} aborted the communicator: {}", name(rank_), reason));
}

void StarMember::onDeparture(std::function<void(Rank)> handler) {
  std::set<Rank> before;
  {
    const std::lock_guard lock(mutex_);
    departed_ = handler;
    before = left_;
  }
  if (!handler || before.empty()) return;
  reactor_->post([handler = std::move(handler), before = std::move(before)] {
    for (const Rank rank : before) handler(rank);
  });
}

bool StarMember::turnedAway() const {
  const std::lock_guard lock(mutex_);
  return turnedAway_;
}

bool StarMember::hasLeft(Rank rank) const {
  const std::lock_guard lock(mutex_);
  return left_.contains(rank);
}

std::optional<Rank> StarMember::center() const {
  const std::lock_guard lock(mutex_);
  return channel_ && !closed_ ? std::optional(center_) : std::nullopt;
}

std::optional<Error> StarMember::failure() const {
  const Error* broken = failure_.load(std::memory_order_acquire);
  if (!broken) [[likely]]
    return std::nullopt;
  return *broken;
}

void StarMember::leave() {
  onFailure(nullptr);
  // End after the lock is let go: their handlers may be waiting for it.
  std::unique_ptr<Pulse> pulse;
  std::unique_ptr<transport::Alarm> succession;
  std::function<void(Rank)> departed;
  Lock lock(mutex_);
  pulse.swap(pulse_);
  succession.swap(succession_);
  departed.swap(departed_);
  // Ends on the reactor's thread, and not inside of what it tells.
  if (dialling_) reactor_->post([dialling = std::exchange(dialling_, nullptr)] {});
  leaving_ = true;
  const auto channel = channel_;
  if (!channel || closed_) return;
  channel->send(StarMessage{Kind::goodbye, 0, -1, {}}.encode());
  // The reactor's thread cannot wait for itself; and of a broken communicator nobody misses this rank.
  if (!onReactorThread() && !failure_.load() && !waitsForNobody_.load(std::memory_order_relaxed))
    changed_.wait_for(lock, goodbyeLimit, [&] { return goodbyeDone_ || closed_; });
  lock.unlock();
  channel->close();
}

}  // namespace falcon::bootstrap
