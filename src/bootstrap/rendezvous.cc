#include "bootstrap/rendezvous.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <vector>

#include "base/log.h"
#include "base/rank_list.h"
#include "base/system_error.h"
#include "bootstrap/arrivals.h"
#include "bootstrap/random.h"

namespace falcon::bootstrap {
namespace {

constexpr auto failureLimit = 10s;  // how long late ranks still hear why it failed
constexpr auto reminderTime = 5s;   // from the first rank's coming on
constexpr int mostNamed = 16;

bool isOfThisProcess(const Member& member) {
  const Member here = thisMember({});
  return member.process == here.process && member.host == here.host;
}

}  // namespace

Rendezvous::Opened Rendezvous::open(std::shared_ptr<transport::Reactor> reactor, const UniqueId& id,
                                    Nanoseconds limit) {
  const auto rendezvous = std::make_shared<Rendezvous>(std::move(reactor), id);
  Opened opened{rendezvous, rendezvous->gone_.get_future()};
  rendezvous->startTimer(limit);
  rendezvous->expectGuests();
  return opened;
}

void Rendezvous::rankZeroFailed(int size, const Error& why) {
  const auto told = std::make_shared<std::promise<void>>();
  auto isTold = told->get_future();
  reactor_->post([weak = weak_from_this(), size, why, told] {
    if (const auto self = weak.lock()) {
      self->mostClaimed_ = std::max(self->mostClaimed_, size);
      self->refused_.insert(0);
      self->fail(why);
      self->endIfDone();
    }
    told->set_value();
  });
  isTold.wait();
}

void Rendezvous::expectGuests() {
  reactor_->expect(transport::Purpose::rendezvous, id_.key, id_.secret,
                   [self = shared_from_this()](FileDescriptor socket, const transport::Hello& hello) {
                     const auto alive = self;  // the handler may be forgotten while it runs
                     alive->welcome(std::move(socket), hello);
                   });
}

Rendezvous::Rendezvous(std::shared_ptr<transport::Reactor> reactor, const UniqueId& id)
    : reactor_(std::move(reactor)), id_(id) {}

Rendezvous::~Rendezvous() {
  Arrivals::forget(id_.key);
  gone_.set_value();
}

void Rendezvous::startTimer(Nanoseconds limit) {
  end_ = std::chrono::steady_clock::now() + limit;
  alarm_ = std::make_unique<transport::Alarm>(reactor_, [weak = weak_from_this()] {
    if (const auto self = weak.lock()) self->alarmRings();
  });
  alarm_->set(limit);
}

/// A rank that died before it came cannot say so: nobody but people, who see this, will think of it.
void Rendezvous::sayWhoIsMissing() const {
  if (phase_ != Phase::collecting) return;
  std::vector<Rank> missing;
  for (Rank rank = 0; rank < size_ && std::ssize(missing) <= mostNamed; ++rank)
    if (!known_.contains(rank)) missing.push_back(rank);
  const bool more = std::ssize(missing) > mostNamed;
  if (more) missing.pop_back();
  log::info("{} of {} ranks have come to the rendezvous at {} and wait for the others: {}{}", known_.size(), size_,
            id_.address.text(), listOf(missing), more ? ", ..." : "");
}

void Rendezvous::alarmRings() {
  if (std::chrono::steady_clock::now() < end_) {
    sayWhoIsMissing();
    return alarm_->set(end_ - std::chrono::steady_clock::now());
  }
  if (phase_ == Phase::collecting && !known_.empty())
    fail(log::decided(Error::remote("only {} of {} ranks came to the rendezvous at {} in time", known_.size(), size_,
                                    id_.address.text())));
  end();
}

void Rendezvous::welcome(FileDescriptor socket, const transport::Hello& hello) {
  JoinRequest request;
  const bool fits = JoinRequest::decode(hello.payload, request);
  const bool isOwn = fits && isOfThisProcess(request.member);
  if (!hello.admitted) {
    if (phase_ == Phase::told) return;
    if (phase_ == Phase::collecting)
      fail(log::decided(Error::system("rank {} cannot be let in at the rendezvous {}: {}", hello.from,
                                      id_.address.text(), reasonOf(EMFILE))));
    if (fits) mostClaimed_ = std::max(mostClaimed_, request.size);
    MessageChannel::sendOnly(socket, refusal(isOwn));
    refused_.insert(hello.from);
    return endIfDone();
  }
  const int number = nextGuest_++;
  auto channel = std::make_shared<MessageChannel>(reactor_, std::move(socket));
  guests_[number] = {hello.from, channel, isOwn};
  channel->start(
      [weak = weak_from_this(), number](std::string_view) {
        if (const auto self = weak.lock()) self->guestFormed(number);
      },
      [weak = weak_from_this(), number](const std::string&) {
        if (const auto self = weak.lock()) self->guestGone(number);
      });
  if (!fits) {
    log::warn("a rank that joins at {} speaks another version of the protocol", id_.address.text());
    JoinAnswer answer;
    answer.code = ErrorCode::invalidUsage;
    answer.text = fmt::format("the rendezvous at {} does not understand this rank: do all load the same library?",
                              id_.address.text());
    channel->send(answer.encode());
    channel->finish();
    return;
  }
  admit(number, hello.from, request);
}

void Rendezvous::admit(int number, Rank rank, const JoinRequest& request) {
  mostClaimed_ = std::max(mostClaimed_, request.size);
  MessageChannel& channel = *guests_[number].channel;
  if (phase_ == Phase::failed) {
    refused_.insert(rank);
    return refuse(guests_[number]);
  }
  if (phase_ == Phase::told) {
    JoinAnswer answer;
    answer.kind = JoinAnswer::Kind::over;
    answer.code = ErrorCode::invalidUsage;
    answer.text = fmt::format(
        "rank {} came to a rendezvous that is over: its {} ranks are complete, and every communicator needs a new "
        "unique id",
        rank, size_);
    channel.send(answer.encode());
    channel.finish();
    guests_[number].rank = -1;  // no business of the others
    return;
  }
  if (!request.withdrawal.empty())
    return fail(
        log::decided(Error::remote("{} cannot take part: {}", nameOf(rank, request.member), request.withdrawal)));
  if (known_.empty()) {
    size_ = request.size;
    if (std::chrono::steady_clock::now() + reminderTime < end_) alarm_->set(reminderTime);
  }
  if (request.size != size_)
    return fail(
        log::decided(Error::invalidUsage("{} says the communicator has {} ranks, rank {} says it has {}",
                                         nameOf(rank, request.member), request.size, known_.begin()->first, size_)));
  if (rank < 0 || rank >= size_)
    return fail(log::decided(Error::invalidUsage("rank {} does not fit into a communicator of {}", rank, size_)));
  if (const auto other = known_.find(rank); other != known_.end())
    return fail(log::decided(Error::invalidUsage("rank {} was claimed twice: by pid {} on {} and by pid {} on {}", rank,
                                                 other->second.process, other->second.host, request.member.process,
                                                 request.member.host)));
  known_[rank] = request.member;
  Arrivals::note(id_.key, rank);
  if (static_cast<int>(known_.size()) == size_) tellAll();
}

void Rendezvous::tellAll() {
  // Drawn anew, because the id may be a fixed address that is used again and again.
  const auto communicator = randomNumber();
  if (!communicator) return fail(log::decided(communicator.error()));
  phase_ = Phase::told;
  JoinAnswer answer;
  answer.kind = JoinAnswer::Kind::table;
  answer.communicator = *communicator;
  for (const auto& [rank, member] : known_) answer.members.push_back(member);
  const auto bytes = MessageChannel::frame(answer.encode());
  for (const auto& [number, guest] : guests_) guest.channel->send(bytes);
}

void Rendezvous::fail(const Error& error) {
  if (phase_ == Phase::failed) return;
  phase_ = Phase::failed;
  failure_ = error;
  for (const auto& [number, guest] : guests_) {
    refuse(guest);
    refused_.insert(guest.rank);
  }
  end_ = std::chrono::steady_clock::now() + failureLimit;
  alarm_->set(failureLimit);
}

/// What this process's system lacks is no trouble of another's system.
std::string Rendezvous::refusal(bool own) const {
  JoinAnswer answer;
  answer.code = !own && failure_->code() == ErrorCode::system ? ErrorCode::remote : failure_->code();
  answer.text = failure_->message();
  return answer.encode();
}

void Rendezvous::refuse(const Guest& guest) const {
  guest.channel->send(refusal(guest.isOwn));
  guest.channel->finish();
}

void Rendezvous::guestFormed(int number) {
  const auto found = guests_.find(number);
  if (found == guests_.end()) return;
  guests_.erase(found);
  endIfDone();
}

void Rendezvous::guestGone(int number) {
  const auto found = guests_.find(number);
  if (found == guests_.end()) return;
  const Rank rank = found->second.rank;
  guests_.erase(found);
  if (phase_ == Phase::failed || rank < 0 || !known_.contains(rank)) return endIfDone();
  fail(log::decided(
      Error::remote("{} died or gave up before the communicator was complete", nameOf(rank, known_[rank]))));
  endIfDone();
}

void Rendezvous::endIfDone() {
  if (phase_ == Phase::collecting || !guests_.empty()) return;
  // The others shall hear why. Ranks are counted, not visits: one that was claimed twice is no other.
  if (phase_ == Phase::failed && std::ssize(refused_) < mostClaimed_) return;
  end();
}

void Rendezvous::end() {
  const auto self = shared_from_this();
  guests_.clear();
  reactor_->forget(transport::Purpose::rendezvous, id_.key);
}

}  // namespace falcon::bootstrap
