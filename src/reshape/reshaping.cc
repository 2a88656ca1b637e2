#include "reshape/reshaping.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <optional>
#include <span>
#include <thread>

#include "base/contained.h"
#include "base/format.h"
#include "base/library_thread.h"
#include "base/wire.h"
#include "reshape/checksum.h"

namespace falcon::reshape {
namespace {

constexpr const char* stepNames[] = {"agree", "prepare", "move", "rebuild", "commit"};

/// Of roles, which are compared only: so that a rank says as much of a large job as of a small one.
std::uint64_t fingerprintOf(const Roles& roles) {
  Checksum checksum;
  checksum.add(std::as_bytes(std::span(roles)));
  return checksum.value();
}

/// What a rank says at the beginning.
struct Offer {
  std::uint64_t before = 0, after = 0;
  std::vector<StateBuffer> state;  ///< without the addresses, and only where another takes the role over
  std::vector<GroupPlace> groups;

  std::string encode() const {
    WireWriter writer;
    writer.put(before).put(after);
    writer.put(static_cast<std::uint32_t>(state.size()));
    for (const StateBuffer& buffer : state)
      writer.put(std::string_view(buffer.name)).put(std::uint64_t{buffer.bytes}).put(std::uint8_t{buffer.replicated});
    writer.put(static_cast<std::uint32_t>(groups.size()));
    for (const GroupPlace& group : groups) writer.put(group.group).put(group.rank);
    return writer.take();
  }
  static std::optional<Offer> decode(std::string_view bytes) {
    WireReader reader(bytes);
    Offer offer;
    offer.before = reader.get<std::uint64_t>();
    offer.after = reader.get<std::uint64_t>();
    const auto buffers = reader.getCount(sizeof(std::uint32_t) + sizeof(std::uint64_t) + 1);
    for (std::size_t i = 0; i < buffers; ++i) {
      StateBuffer& buffer = offer.state.emplace_back();
      buffer.name = reader.getString();
      buffer.bytes = reader.get<std::uint64_t>();
      buffer.replicated = reader.get<std::uint8_t>() != 0;
    }
    const auto places = reader.getCount(sizeof(std::uint64_t) + sizeof(Rank));
    for (std::size_t i = 0; i < places; ++i) {
      GroupPlace& group = offer.groups.emplace_back();
      group.group = reader.get<std::uint64_t>();
      group.rank = reader.get<Rank>();
    }
    if (!reader.finished()) return std::nullopt;
    return offer;
  }
};

/// How a step went on one rank: "" is well. With what the others have to know of it.
struct Said {
  std::string problem;
  std::string content;
};

/// One rank's way through the steps.
class Reshaping {
 public:
  Reshaping(const ReshapeRequest& request, ReshapeWorld& world) : request_(request), world_(world) {}

  Result<ReshapeResult> run() {
    for (const auto& [step, work] :
         {std::pair{ReshapeStep::agree, &Reshaping::agree}, std::pair{ReshapeStep::prepare, &Reshaping::prepare},
          std::pair{ReshapeStep::move, &Reshaping::move}, std::pair{ReshapeStep::rebuild, &Reshaping::rebuild}}) {
      world_.at(step);
      if (const Status done = told([&, work = work] { return (this->*work)(); }); !done) {
        world_.abandon();
        return Error(done.error().code(), fmt::format("{}: {}", nameOf(step), done.error().message()));
      }
    }
    world_.at(ReshapeStep::commit);
    world_.adoptGroups();
    if (changes()) world_.commit(newRole(), std::move(room_));
    return result_;
  }

 private:
  using Words = std::vector<std::string>;  ///< the contents, by rank

  int newRole() const { return request_.after[static_cast<std::size_t>(request_.rank)]; }
  bool changes() const { return request_.before[static_cast<std::size_t>(request_.rank)] != newRole(); }
  const Offer& offerOf(Rank rank) const { return offers_[static_cast<std::size_t>(rank)]; }

  /// What throws on this rank (no memory, mostly) is a problem of its own, of which it tells the others.
  template <class Work>
  static Status told(Work&& work) {
    Status done;
    contained([&] { done = work(); }, [&](const char* problem) { done = Error::system("{}", problem); });
    return done;
  }

  /// Everyone says how it went, and all decide alike: the lowest rank's problem counts.
  Result<Words> confer(const Said& mine) {
    auto all =
        world_.allGather(WireWriter().put(std::string_view(mine.problem)).put(std::string_view(mine.content)).take());
    if (!all) return all.error();
    Words contents;
    for (std::size_t rank = 0; rank < all->size(); ++rank) {
      WireReader reader((*all)[rank]);
      const std::string problem = reader.getString();
      contents.push_back(reader.getString());
      if (!reader.finished()) return Error::remote("rank {} does something else than to reshape", rank);
      if (!problem.empty()) return Error::system("rank {}: {}", rank, problem);
    }
    return contents;
  }
  Status confer(const Status& mine) {
    const auto all = confer(Said{mine ? "" : std::string(mine.error().message()), ""});
    return all ? Status() : Status(all.error());
  }

  Status agree() {
    Offer mine{fingerprintOf(request_.before), fingerprintOf(request_.after), {}, world_.groups()};
    if (changes()) mine.state = world_.state();
    const auto all = confer(Said{"", mine.encode()});
    if (!all) return all.error();
    for (const std::string& bytes : *all) {
      auto offer = Offer::decode(bytes);
      if (!offer) return Error::remote("rank {} does something else than to reshape", offers_.size());
      offers_.push_back(std::move(*offer));
    }
    // The same on all ranks, so that all come to the same end.
    for (Rank rank = 0; rank < static_cast<Rank>(offers_.size()); ++rank) {
      const Offer& offer = offerOf(rank);
      if (offer.after != offerOf(0).after)
        return Error::invalidUsage("rank {} gives other roles than rank 0: all have to give the same", rank);
      if (offer.before != offerOf(0).before)
        return Error::invalidUsage("rank {} knows of other roles in force than rank 0", rank);
      if (offer.groups.size() != offerOf(0).groups.size())
        return Error::invalidUsage("rank {} has places for {} groups, rank 0 for {}: all have the same", rank,
                                   offer.groups.size(), offerOf(0).groups.size());
      for (std::size_t place = 0; place < offer.groups.size(); ++place)
        if ((offer.groups[place].group == 0) != (offerOf(0).groups[place].group == 0))
          return Error::invalidUsage("rank {} and rank 0 do not both have a group {}: all have one, or none has", rank,
                                     place);
    }
    return {};
  }

  Status prepare() {
    return confer(told([&]() -> Status {
      if (!changes()) return {};
      auto room = world_.prepare(newRole());
      if (!room) return room.error();
      room_ = std::move(*room);
      return checkRoom();
    }));
  }

  /// What prepare() gave must be what the role has, in any order; afterwards in the role's.
  Status checkRoom() {
    const Rank holder = holderOf(newRole(), request_.before);
    std::vector<StateBuffer> sorted;
    for (const StateBuffer& wanted : offerOf(holder).state) {
      const auto found =
          std::find_if(room_.begin(), room_.end(), [&](const StateBuffer& each) { return each.name == wanted.name; });
      if (found == room_.end())
        return Error::invalidUsage("no room for the state \"{}\" of role {}", wanted.name, newRole());
      if (found->bytes != wanted.bytes)
        return Error::invalidUsage("room of {} bytes for the state \"{}\" of role {}, which has {}", found->bytes,
                                   wanted.name, newRole(), wanted.bytes);
      if (!found->data) return Error::invalidUsage("the room for the state \"{}\" is NULL", wanted.name);
      found->replicated = wanted.replicated;
      sorted.push_back(*found);
    }
    if (sorted.size() != room_.size())
      return Error::invalidUsage("room for {} buffers, but role {} has {}", room_.size(), newRole(), sorted.size());
    room_ = std::move(sorted);
    return {};
  }

  static const StateBuffer* find(const std::vector<StateBuffer>& buffers, const std::string& name) {
    const auto found =
        std::find_if(buffers.begin(), buffers.end(), [&](const StateBuffer& each) { return each.name == name; });
    return found == buffers.end() ? nullptr : &*found;
  }

  /// Of all moves, in one order; every rank picks its own.
  Status move() {
    const std::vector<StateBuffer> state = world_.state();
    std::vector<StateMessage> mine;
    Status sound;
    for (const RoleMove& move : movesFor(request_.before, request_.after, request_.places, request_.avoid))
      for (const StateBuffer& wanted : offerOf(holderOf(move.role, request_.before)).state) {
        if (wanted.replicated != move.replicated) continue;
        if (move.from != move.to) result_.bytesInAll += wanted.bytes;
        if (move.from != request_.rank && move.to != request_.rank) continue;
        StateMessage message{move.from, move.to, nullptr, nullptr, wanted.bytes};
        if (move.to == request_.rank) message.received = find(room_, wanted.name)->data;
        if (move.from == request_.rank) {
          const StateBuffer* own = find(state, wanted.name);
          if (!own || own->bytes != wanted.bytes || own->replicated != wanted.replicated)
            sound = Error::invalidUsage(
                "replicas have to have the same state, but \"{}\" of role {} is not here, or of another size",
                wanted.name, move.role);
          else
            message.sent = own->data;
        }
        mine.push_back(message);
      }
    // Nobody sends before all know that all can.
    if (const Status all = confer(sound); !all) return all;

    std::vector<StateMessage> away;
    for (const StateMessage& message : mine) {
      if (message.from != message.to)
        away.push_back(message);
      else
        std::memcpy(message.received, message.sent, message.bytes);
    }
    // What is sent is read once more beside its being sent, not after it.
    std::string sent;
    Status summed;
    const auto sum = [&] { summed = told([&] { return checksums(away, true, sent); }); };
    std::thread summing;
    contained([&] { summing = libraryThread("nccl-falcon-sum", sum); }, [](const char*) {});
    const Status moved = told([&] { return world_.exchange(away); });
    if (summing.joinable())
      summing.join();
    else
      sum();  // there was no thread to be had
    const auto all = confer(Said{moved && summed ? "" : std::string((moved ? summed : moved).error().message()), sent});
    if (!all) return all.error();
    return confer(verify(away, *all));
  }

  /// By peer, in the order of the messages.
  static Status checksums(const std::vector<StateMessage>& messages, bool sent, std::string& encoded) {
    WireWriter writer;
    for (const StateMessage& message : messages) {
      const std::byte* data = sent ? message.sent : message.received;
      if (!data) continue;
      Checksum checksum;
      checksum.add({data, message.bytes});
      writer.put(sent ? message.to : message.from).put(checksum.value());
    }
    encoded = writer.take();
    return {};
  }

  Status verify(const std::vector<StateMessage>& messages, const Words& sent) {
    std::map<Rank, std::vector<std::uint64_t>> expected;  // by sender, in order
    for (std::size_t from = 0; from < sent.size(); ++from) {
      WireReader reader(sent[from]);
      while (!reader.finished() && reader.ok()) {
        const Rank to = reader.get<Rank>();
        const auto checksum = reader.get<std::uint64_t>();
        if (to == request_.rank) expected[static_cast<Rank>(from)].push_back(checksum);
      }
    }
    std::string own;
    if (const Status summed = checksums(messages, false, own); !summed) return summed;
    WireReader reader(own);
    std::map<Rank, std::size_t> seen;
    while (!reader.finished() && reader.ok()) {
      const Rank from = reader.get<Rank>();
      const auto checksum = reader.get<std::uint64_t>();
      const std::size_t number = seen[from]++;
      if (number >= expected[from].size() || expected[from][number] != checksum)
        return Error::remote("what came of rank {} is not what it has sent (by its checksum)", from);
    }
    for (const StateMessage& message : messages)
      if (message.received) result_.bytesReceived += message.bytes;
    return {};
  }

  Status rebuild() {
    for (std::size_t place = 0; place < offerOf(0).groups.size(); ++place) {
      // A group is called by its first member's rank here, which all know.
      std::map<std::uint64_t, int> colors;
      for (const Offer& offer : offers_)
        if (offer.groups[place].group != 0)
          colors.try_emplace(offer.groups[place].group, static_cast<int>(colors.size()));
      if (colors.empty()) continue;
      const GroupPlace& as = offerOf(holderOf(newRole(), request_.before)).groups[place];
      const Status made = told([&] { return world_.rebuild(place, as.group == 0 ? -1 : colors.at(as.group), as); });
      if (const Status all = confer(made); !all) return all;
    }
    return {};
  }

  const ReshapeRequest& request_;
  ReshapeWorld& world_;
  std::vector<Offer> offers_;
  std::vector<StateBuffer> room_;
  ReshapeResult result_;
};

}  // namespace

const char* nameOf(ReshapeStep step) {
  return stepNames[static_cast<std::size_t>(step)];
}

Result<ReshapeResult> reshape(const ReshapeRequest& request, ReshapeWorld& world) {
  if (const Status valid = checkRoles(request.after, static_cast<int>(request.before.size())); !valid)
    return valid.error();
  return Reshaping(request, world).run();
}

}  // namespace falcon::reshape
