#include "bootstrap/star_member.h"

#include "base/log.h"

namespace falcon::bootstrap {

using Kind = StarMessage::Kind;

namespace {

constexpr auto goodbyeLimit = 5s;  // rank 0 may be short of processor time
constexpr std::size_t maximumContribution = 1 << 20;

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
  channel->start(
      [weak = weak_from_this()](std::string_view bytes) {
        if (const auto self = weak.lock()) self->receive(bytes);
      },
      [weak = weak_from_this()](const std::string& why) {
        if (const auto self = weak.lock()) self->closed(why);
      });
  if (rank_ != 0) {
    hello.purpose = transport::Purpose::pulse;
    auto idle =
        transport::connectWithHello(reactor_->address(), members_[0].address, hello,
                                    deadline - std::chrono::steady_clock::now(), transport::goneLimit, isGivenUp);
    if (gaveUp) return *gaveUp;
    if (!idle) return Error::remote("{} cannot reach {}: {}", name(rank_), name(0), idle.error().message());
    auto pulse = std::make_unique<Pulse>(reactor_, std::move(*idle), [weak = weak_from_this()] {
      if (const auto self = weak.lock()) self->closed("its host fell silent");
    });
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

/// The others hear why it does not come.
void StarMember::withdraw(const Error& why) const {
  transport::withdraw(members_[0].address,
                      {transport::Purpose::communicator, id_, secret_, rank_, why.message().substr(0, 1000)},
                      transport::withdrawalLimit);
}

Result<std::vector<std::string>> StarMember::gather(std::string_view mine, Nanoseconds limit) {
  if (mine.size() > maximumContribution)
    return log::decided(Error::internal("a contribution of {} bytes to an all-gather is too long", mine.size()));
  const auto deadline = std::chrono::steady_clock::now() + limit;
  const std::lock_guard one(gatherMutex_);
  const std::uint64_t sequence = sequence_++;
  Lock lock(mutex_);
  if (const Error* broken = failure_.load()) return *broken;
  if (closed_) return log::decided(Error::remote("{} has left the communicator and ended", name(0)));
  channel_->send(StarMessage{Kind::gather, sequence, -1, {std::string(mine)}}.encode());
  const auto decided = [&] { return answers_.contains(sequence) || failure_.load() || closed_; };
  if (!changed_.wait_until(lock, deadline, decided)) {
    // The center knows who is missing, and ends the communicator for all: a gather done by some only cannot be
    // repeated.
    channel_->send(StarMessage{Kind::late, sequence, -1, {text(limit)}}.encode());
    if (!changed_.wait_for(lock, 1s, decided)) {
      lock.unlock();
      fail(Error::remote("{} waited {} in vain for an answer of {}", name(rank_), text(limit), name(0)));
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
      left_.insert(message.rank);
      if (message.rank != 0) break;
      centerMayEnd_ = true;
      channel_->send(StarMessage{Kind::noted, 0, -1, {}}.encode());
      break;
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

void StarMember::closed(const std::string& why) {
  reactorThread_.store(std::this_thread::get_id());
  bool death;
  {
    const std::lock_guard lock(mutex_);
    closed_ = true;
    death = !leaving_ && !centerMayEnd_;
    turnedAway_ = !started_ && !failure_.load();
    changed_.notify_all();
  }
  if (death) fail(Error::remote("{} died: {}", name(0), why));
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

bool StarMember::turnedAway() const {
  const std::lock_guard lock(mutex_);
  return turnedAway_;
}

bool StarMember::hasLeft(Rank rank) const {
  const std::lock_guard lock(mutex_);
  return left_.contains(rank);
}

std::optional<Error> StarMember::failure() const {
  const Error* broken = failure_.load(std::memory_order_acquire);
  if (!broken) [[likely]]
    return std::nullopt;
  return *broken;
}

void StarMember::leave() {
  onFailure(nullptr);
  std::unique_ptr<Pulse> pulse;  // ends after the lock is let go: its handler may be waiting for it
  Lock lock(mutex_);
  pulse.swap(pulse_);
  leaving_ = true;
  const auto channel = channel_;
  if (!channel || closed_) return;
  channel->send(StarMessage{Kind::goodbye, 0, -1, {}}.encode());
  // The reactor's thread cannot wait for itself; and of a broken communicator nobody misses this rank.
  if (!onReactorThread() && !failure_.load())
    changed_.wait_for(lock, goodbyeLimit, [&] { return goodbyeDone_ || closed_; });
  lock.unlock();
  channel->close();
}

}  // namespace falcon::bootstrap
