#include "bootstrap/star_center.h"

#include <algorithm>
#include <cerrno>

#include "base/log.h"
#include "base/parameters.h"
#include "base/system_error.h"

namespace falcon::bootstrap {

using Kind = StarMessage::Kind;

namespace {

/// All hear at the same moment that the center before has ended.
constexpr Nanoseconds succession = 30s;

}  // namespace

void StarCenter::open(std::shared_ptr<transport::Reactor> reactor, CommunicatorId id, const transport::Secret& secret,
                      std::vector<Member> members) {
  expect(std::make_shared<StarCenter>(std::move(reactor), id, std::move(members), 0), secret);
}

void StarCenter::inherit(std::shared_ptr<transport::Reactor> reactor, CommunicatorId id,
                         const transport::Secret& secret, std::vector<Member> members, Rank heir,
                         const std::set<Rank>& left) {
  const auto center = std::make_shared<StarCenter>(std::move(reactor), id, std::move(members), heir);
  for (const Rank rank : left) center->seat(rank).presence = Presence::left;
  center->awaitLate(succession);
  expect(center, secret);
}

void StarCenter::expect(const std::shared_ptr<StarCenter>& center, const transport::Secret& secret) {
  center->reactor_->expect(transport::Purpose::communicator, center->id_, secret,
                           [center](FileDescriptor socket, const transport::Hello& hello) {
                             const auto alive = center;  // the handler may be forgotten while it runs
                             alive->welcome(std::move(socket), hello);
                           });
  center->reactor_->expect(transport::Purpose::pulse, center->id_, secret,
                           [weak = std::weak_ptr(center)](FileDescriptor socket, const transport::Hello& hello) {
                             if (const auto alive = weak.lock()) alive->welcomePulse(std::move(socket), hello);
                           });
}

StarCenter::StarCenter(std::shared_ptr<transport::Reactor> reactor, CommunicatorId id, std::vector<Member> members,
                       Rank host)
    : reactor_(std::move(reactor)), id_(id), members_(std::move(members)), host_(host), seats_(members_.size()) {}

int StarCenter::count(Presence presence) const {
  return static_cast<int>(std::ranges::count(seats_, presence, &Seat::presence));
}

void StarCenter::welcome(FileDescriptor socket, const transport::Hello& hello) {
  const Rank rank = hello.from;
  if (rank < 0 || rank >= static_cast<Rank>(seats_.size()) || seat(rank).presence != Presence::awaited) {
    log::warn("a second connection of {} to its communicator was dropped", name(rank));
    return;
  }
  if (!hello.admitted) return fail(noDescriptorFor(rank));
  if (!hello.payload.empty()) return withdrawn(rank, hello.payload);
  auto channel = std::make_shared<MessageChannel>(reactor_, std::move(socket));
  seat(rank).presence = Presence::here;
  seat(rank).channel = channel;
  channel->start(
      [weak = weak_from_this(), rank](std::string_view bytes) {
        if (const auto self = weak.lock()) self->receive(rank, bytes);
      },
      [weak = weak_from_this(), rank](const std::string& why) {
        if (const auto self = weak.lock()) self->gone(rank, why);
      });
  if (!failure_.empty())
    channel->send(failure_);
  else if (count(Presence::awaited) == 0)
    toAllHere({Kind::start, 0, -1, {}});
  // Only of an inherited center some have left before others have come, who may not have heard of it.
  for (Rank other = 0; other < static_cast<Rank>(seats_.size()); ++other)
    if (seat(other).presence == Presence::left) channel->send(StarMessage{Kind::left, 0, other, {}}.encode());
}

/// The others hear of it as they come. Nothing else tells them: the communicator that this one is a part of is well.
void StarCenter::withdrawn(Rank rank, const std::string& why) {
  seat(rank).presence = Presence::withdrawn;
  awaitLate(parameters::initTimeout.value());
  fail(fmt::format("{} cannot take part: {}", name(rank), why));
  endIfEmpty();
}

void StarCenter::awaitLate(Nanoseconds limit) {
  awaitsLate_ = true;
  late_ = std::make_unique<transport::Alarm>(reactor_, [weak = weak_from_this()] {
    const auto self = weak.lock();
    if (!self) return;
    self->awaitsLate_ = false;
    self->endIfEmpty();
  });
  late_->set(limit);
}

std::string StarCenter::noDescriptorFor(Rank rank) const {
  return fmt::format("{} cannot connect to {}, which has no file descriptor for it: {}", name(rank), name(host_),
                     reasonOf(EMFILE));
}

void StarCenter::welcomePulse(FileDescriptor socket, const transport::Hello& hello) {
  const Rank rank = hello.from;
  if (rank < 0 || rank >= static_cast<Rank>(seats_.size()) || seat(rank).pulse) return;
  if (!hello.admitted) return fail(noDescriptorFor(rank));
  seat(rank).pulse = std::make_unique<Pulse>(reactor_, std::move(socket), [weak = weak_from_this(), rank] {
    if (const auto self = weak.lock()) self->gone(rank, "its host fell silent");
  });
}

void StarCenter::receive(Rank rank, std::string_view bytes) {
  StarMessage message;
  const bool fits = StarMessage::decode(bytes, message) && (message.kind > Kind::abort || message.texts.size() == 1);
  if (!fits) return fail(name(rank) + " sent a message that makes no sense");
  if (seat(rank).presence != Presence::here) return;
  switch (message.kind) {
    case Kind::gather:
      return gather(rank, std::move(message));
    case Kind::late:
      return late(rank, message);
    case Kind::abort:
      return fail(fmt::format("{} aborted the communicator: {}", name(rank), message.texts[0]));
    case Kind::goodbye:
      return goodbye(rank);
    case Kind::noted:
      return noted(rank);
    default:
      return fail(name(rank) + " sent a message that only the center sends");
  }
}

void StarCenter::gather(Rank rank, StarMessage message) {
  if (!failure_.empty()) return;
  Parts& parts = gathers_[message.sequence];
  parts.resize(seats_.size());
  for (Rank other = 0; other < static_cast<Rank>(seats_.size()); ++other) {
    // Whoever gave its part before it left is not missed.
    if (seat(other).presence != Presence::left || parts[static_cast<std::size_t>(other)]) continue;
    seat(rank).channel->send(
        StarMessage{Kind::unavailable, message.sequence, -1, {name(other) + " has left the communicator"}}.encode());
    gathers_.erase(message.sequence);  // goodbye() has told the others
    return;
  }
  parts[static_cast<std::size_t>(rank)] = std::move(message.texts[0]);
  if (std::ranges::all_of(parts, [](const auto& part) { return part.has_value(); })) completeGather(message.sequence);
}

void StarCenter::completeGather(std::uint64_t sequence) {
  StarMessage result{Kind::gathered, sequence, -1, {}};
  for (auto& part : gathers_[sequence]) result.texts.push_back(std::move(*part));
  gathers_.erase(sequence);
  if (result.encode().size() > MessageChannel::maximumMessage)
    return fail("an all-gather is larger than what the bootstrap network carries");
  toAllHere(result);
}

void StarCenter::late(Rank rank, const StarMessage& message) {
  if (!failure_.empty()) return;
  std::string missing;
  const auto found = gathers_.find(message.sequence);
  if (found == gathers_.end()) return;  // its result is on the way
  for (std::size_t other = 0; other < found->second.size(); ++other)
    if (!found->second[other]) missing += (missing.empty() ? "" : ", ") + name(static_cast<Rank>(other));
  fail(fmt::format("{} waited {} in vain for {}", name(rank), message.texts[0], missing));
}

void StarCenter::goodbye(Rank rank) {
  seat(rank).presence = Presence::left;
  const StarMessage left{Kind::left, 0, rank, {}};
  if (rank == host_) {
    for (Rank other = 0; other < static_cast<Rank>(seats_.size()); ++other)
      if (seat(other).presence == Presence::here) notYetNoted_.insert(other);
  }
  toAllHere(left, rank);
  // Gathers that wait for it wait in vain.
  for (auto entry = gathers_.begin(); entry != gathers_.end();) {
    if (entry->second[static_cast<std::size_t>(rank)]) {
      ++entry;
      continue;
    }
    toAllHere({Kind::unavailable, entry->first, -1, {name(rank) + " has left the communicator"}});
    entry = gathers_.erase(entry);
  }
  // The host's process may end now, and the center with it: so the others must know first.
  if (rank != host_ || notYetNoted_.empty())
    seat(rank).channel->send(StarMessage{Kind::goodbyeDone, 0, -1, {}}.encode());
  noted(rank);
}

void StarCenter::noted(Rank rank) {
  if (notYetNoted_.erase(rank) == 0 || !notYetNoted_.empty()) return;
  if (seat(host_).channel) seat(host_).channel->send(StarMessage{Kind::goodbyeDone, 0, -1, {}}.encode());
}

void StarCenter::gone(Rank rank, const std::string& why) {
  Seat& empty = seat(rank);
  empty.channel.reset();
  empty.pulse.reset();
  if (empty.presence == Presence::here) {
    empty.presence = Presence::dead;
    fail(fmt::format("{} died: {}", name(rank), why));
  }
  noted(rank);
  endIfEmpty();
}

void StarCenter::fail(const std::string& text) {
  if (!failure_.empty()) return;
  const StarMessage message{Kind::failed, 0, -1, {text}};
  failure_ = message.encode();
  gathers_.clear();
  toAllHere(message);
}

void StarCenter::toAllHere(const StarMessage& message, Rank except) {
  const auto bytes = MessageChannel::frame(message.encode());
  for (Rank rank = 0; rank < static_cast<Rank>(seats_.size()); ++rank)
    if (seat(rank).presence == Presence::here && rank != except) seat(rank).channel->send(bytes);
}

void StarCenter::endIfEmpty() {
  for (const Seat& one : seats_)
    if (one.channel) return;
  if (awaitsLate_ && count(Presence::awaited) > 0) return;
  // Those who never came have another way to learn that it is over: the rendezvous, or the parent communicator.
  const auto self = shared_from_this();
  reactor_->forget(transport::Purpose::pulse, id_);
  reactor_->forget(transport::Purpose::communicator, id_);
}

}  // namespace falcon::bootstrap
