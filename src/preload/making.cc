#include "preload/making.h"

#include "base/contained.h"
#include "base/first_time.h"
#include "base/job_rank.h"
#include "base/library_thread.h"
#include "base/log.h"
#include "base/parameters.h"
#include "bootstrap/make_unique_id.h"
#include "collectives/member_exchange.h"
#include "control/shown_join.h"
#include "control/step_agreement.h"

namespace falcon::preload {
namespace {

/// So long after the vendor has made a communicator Falcon's network may still be on its way: the ranks have all met
/// in the vendor's, so who has not come by then has no Falcon.
constexpr Nanoseconds patience = 30s;

}  // namespace

std::shared_ptr<Making> Making::start(Join join) {
  auto making = std::make_shared<Making>();
  startThread(making, std::move(join), nullptr);
  return making;
}

std::shared_ptr<Making> Making::startBehind(const std::shared_ptr<WatchedCommunicator>& parent, Join join) {
  auto making = std::make_shared<Making>();
  startThread(making, std::move(join), std::make_shared<WatchedCommunicator::Step>(parent, making->ended_));
  return making;
}

// The parent's network stays as long as the turn does, whatever the application does with the parent.
void Making::startThread(std::shared_ptr<Making> making, Join join, Turn turn) {
  libraryThread("nccl-falcon-set", [making = std::move(making), join = std::move(join), turn = std::move(turn)] {
    if (turn) turn->awaitTurn();
    contained([&] { making->run(join); },
              [&](const char* problem) { making->notWatched(Error::internal("{}", problem)); });
    making->end();
  }).detach();
}

void Making::end() noexcept {
  if (!hasEnded_.exchange(true)) end_.set_value();
}

void Making::run(const Join& join) {
  const auto joined = join([this] { return isGivenUp(); });
  if (!joined) return notWatched(joined.error());
  if (!joined->network) return;
  const std::shared_ptr<WatchedCommunicator> communicator = awaitMade();
  if (!communicator) return;
  bootstrap::CommunicatorNetwork& network = *joined->network;
  if (network.rank() != communicator->rank() || network.size() != communicator->size())
    return notWatched(Error::internal("it is rank {} of {} for the vendor and rank {} of {} for Falcon",
                                      communicator->rank(), communicator->size(), network.rank(), network.size()));
  auto members = collectives::exchangeMembers(network, communicator->device(), joined->job->contact());
  if (!members) return notWatched(members.error());
  log::info("communicator {:016x}: rank {} of {} is watched", network.id(), network.rank(), network.size());
  communicator->introduce(joined->job, joined->network, std::move(*members));
}

void Making::notWatched(const Error& error) const {
  const std::lock_guard lock(mutex_);
  if (isOver()) return;
  if (isLate() && error.code() == ErrorCode::remote)
    log::notice("a communicator is not watched: not all of its ranks came; is NCCL_FALCON=1 set for all of them?");
  else
    log::notice("a communicator is not watched: {}", error.message());
}

bool Making::isOver() const {
  return givenUp_ || (communicator_ && communicator_->isOver());
}

bool Making::isLate() const {
  return madeAt_ && std::chrono::steady_clock::now() - *madeAt_ > patience;
}

std::shared_ptr<WatchedCommunicator> Making::made(Rank rank, int size, int device) {
  const std::lock_guard lock(mutex_);
  if (!communicator_) {
    communicator_ = std::make_shared<WatchedCommunicator>(rank, size, device, ended_);
    if (device >= 0) madeAt_ = std::chrono::steady_clock::now();
  }
  changed_.notify_all();
  return communicator_;
}

void Making::giveUp() {
  const std::lock_guard lock(mutex_);
  givenUp_ = true;
  changed_.notify_all();
}

void Making::lose() {
  giveUp();
  if (!firstTime("a child's handle")) return;
  log::info(
      "a communicator was made of another without waiting for it, and its handle was not seen again, so it is not "
      "watched: Falcon looks for it where the vendor writes it until it is first used");
}

bool Making::isGivenUp() const {
  const std::lock_guard lock(mutex_);
  return isOver() || isLate();
}

std::shared_ptr<WatchedCommunicator> Making::awaitMade() {
  std::unique_lock lock(mutex_);
  const auto decided = [this] { return givenUp_ || communicator_; };
  if (!changed_.wait_for(lock, parameters::initTimeout.value(), decided)) {
    lock.unlock();
    lose();
    return nullptr;
  }
  return givenUp_ ? nullptr : communicator_;
}

namespace {

/// All ranks of what is to be made come to the rendezvous that the id names.
Result<Making::Joined> meet(const std::shared_ptr<transport::Reactor>& reactor, std::shared_ptr<control::Job> job,
                            const bootstrap::UniqueId& id, Rank rank, int size,
                            const std::function<bool()>& isGivenUp) {
  instrument::Making making;
  if (size > 1)
    making = job->making({instrument::MakingKind::init, id.key, rank, size, {}, SystemClock::instance().now()});
  auto network = control::joinShown(reactor, id, rank, size, making, isGivenUp);
  // Where this process holds the rendezvous, it would wait for the others for minutes.
  if (!network && isGivenUp()) bootstrap::dropUniqueId(id);
  if (!network) return network.error();
  return Making::Joined{std::move(job), std::move(*network)};
}

/// Null: there is none. Who was at a step when it broke has said so, and once is enough.
std::shared_ptr<bootstrap::CommunicatorNetwork> wholeNetwork(const WatchedCommunicator& parent) {
  auto whole = parent.network();
  const auto broken = whole ? whole->failure() : std::nullopt;
  if (!broken) return whole;
  log::info("a communicator is not watched, since that which it is made of is not any more: {}", broken->message());
  return nullptr;
}

/// Who lacks a step comes to the next one, if there is one: until then this waits, so that nothing but this step is
/// lost.
Status agreeOn(std::uint64_t number, bootstrap::CommunicatorNetwork& network) {
  constexpr Nanoseconds aYear = std::chrono::hours(365 * 24);
  return control::agreeOnStep(number, [&](std::string_view mine) { return network.allGather(mine, aYear); });
}

}  // namespace

Making::Join joinById(const bootstrap::UniqueId& id, Rank rank, int size) {
  return [id, rank, size](const std::function<bool()>& isGivenUp) -> Result<Making::Joined> {
    auto reactor = transport::processReactor();
    if (!reactor) return reactor.error();
    auto job = control::Job::acquire(*reactor, fmt::format("{:016x}", id.key));
    if (!job) return Making::Joined{};
    return meet(*reactor, std::move(job), id, rank, size, isGivenUp);
  };
}

Making::Join joinBySplit(std::shared_ptr<WatchedCommunicator> parent, std::uint64_t number, int color, int key) {
  return [parent = std::move(parent), number, color, key](const std::function<bool()>&) -> Result<Making::Joined> {
    auto job = parent->job();
    const auto whole = wholeNetwork(*parent);
    if (!job || !whole) return Making::Joined{};
    if (const Status agreed = agreeOn(number, *whole); !agreed) return agreed.error();
    auto network = whole->split(color, key, parameters::initTimeout.value());
    if (!network) return network.error();
    return Making::Joined{std::move(job), std::move(*network)};
  };
}

Making::Join joinByShrink(std::shared_ptr<WatchedCommunicator> parent, std::uint64_t number,
                          std::vector<Rank> excluded) {
  return [parent = std::move(parent), number,
          excluded = std::move(excluded)](const std::function<bool()>& isGivenUp) -> Result<Making::Joined> {
    auto job = parent->job();
    const auto whole = parent->network();
    if (!job || !whole) return Making::Joined{};
    whole->shrinksWere(excluded, number);
    auto network = whole->shrink(excluded, parameters::initTimeout.value(), [&]() -> std::optional<Error> {
      if (!isGivenUp()) return std::nullopt;
      return Error::remote("the communicator is not waited for any longer");
    });
    if (!network) return network.error();
    return Making::Joined{std::move(job), std::move(*network)};
  };
}

Making::Join joinByGrowth(std::shared_ptr<WatchedCommunicator> parent, std::uint64_t number, int size,
                          std::optional<bootstrap::UniqueId> id) {
  return [parent = std::move(parent), number, size, id](const auto& isGivenUp) -> Result<Making::Joined> {
    auto job = parent->job();
    const auto whole = wholeNetwork(*parent);
    if (!job || !whole) return Making::Joined{};
    if (const Status atStep = agreeOn(number, *whole); !atStep) return atStep.error();
    const auto agreed = control::agreedId(*whole, id, {});
    if (!agreed) return agreed.error();
    auto reactor = transport::processReactor();
    if (!reactor) return reactor.error();
    return meet(*reactor, std::move(job), *agreed, whole->rank(), size, isGivenUp);
  };
}

}  // namespace falcon::preload
