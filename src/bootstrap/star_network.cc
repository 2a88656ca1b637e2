#include "bootstrap/star_network.h"

#include <algorithm>

#include "base/log.h"
#include "bootstrap/random.h"
#include "bootstrap/star_center.h"
#include "transport/descriptor_limit.h"

namespace falcon::bootstrap {
namespace {

struct Choice {
  std::int32_t color = -1;
  std::int32_t key = 0;
  Rank oldRank = -1;
};

}  // namespace

Status CommunicatorNetwork::barrier(Nanoseconds limit) {
  const auto all = allGather({}, limit);
  if (!all) return all.error();
  return {};
}

Result<std::shared_ptr<CommunicatorNetwork>> StarNetwork::form(std::shared_ptr<transport::Reactor> reactor,
                                                               CommunicatorId id, const transport::Secret& secret,
                                                               Rank rank, std::vector<Member> members,
                                                               Nanoseconds limit, const GivenUp& givenUp) {
  if (rank == 0) {
    // As in join(): a shortage is said, and met where it shows.
    (void)transport::reserveDescriptors(2 * members.size(),
                                        fmt::format("rank 0 of a communicator of {} ranks", members.size()));
    StarCenter::open(reactor, id, secret, members);
  }
  auto member = std::make_shared<StarMember>(reactor, id, secret, rank, std::move(members));
  auto network = std::make_shared<StarNetwork>(member);
  const auto connected = member->connect(limit, givenUp);
  if (!connected) return connected.error();
  return std::shared_ptr<CommunicatorNetwork>(network);
}

Result<std::shared_ptr<CommunicatorNetwork>> StarNetwork::split(int color, int key, Nanoseconds limit,
                                                                const GivenUp& givenUp) {
  const auto deadline = std::chrono::steady_clock::now() + limit;
  const std::uint64_t number = splits_++;
  auto texts = allGather(WireWriter().put(std::int32_t{color}).put(std::int32_t{key}).bytes(), limit, givenUp);
  if (!texts) return texts.error();
  std::vector<Choice> chosen;
  for (std::size_t other = 0; other < texts->size(); ++other) {
    WireReader reader((*texts)[other]);
    Choice choice;
    choice.color = reader.get<std::int32_t>();
    choice.key = reader.get<std::int32_t>();
    choice.oldRank = static_cast<Rank>(other);
    if (!reader.finished())
      return log::decided(
          Error::remote("{} does something else than this rank's split", nameOf(choice.oldRank, member_->members())));
    if (choice.color == color) chosen.push_back(choice);
  }
  if (color < 0) return std::shared_ptr<CommunicatorNetwork>();
  std::ranges::stable_sort(chosen, {}, &Choice::key);  // already in the order of old ranks
  std::vector<Member> members;
  Rank newRank = -1;
  for (const Choice& choice : chosen) {
    if (choice.oldRank == rank()) newRank = static_cast<Rank>(members.size());
    members.push_back(member_->members()[static_cast<std::size_t>(choice.oldRank)]);
  }
  const CommunicatorId newId = hashOf({id(), number, static_cast<std::uint64_t>(color)});
  if (members.size() == 1) return aloneNetwork(newId, secret());
  return form(member_->reactor(), newId, secret(), newRank, std::move(members),
              deadline - std::chrono::steady_clock::now(), [&] {
                auto problem = failure();
                return problem || !givenUp ? problem : givenUp();
              });
}

std::vector<Rank> StarNetwork::remainingWithout(std::span<const Rank> excluded) const {
  std::vector<Rank> remaining;
  for (Rank other = 0; other < size(); ++other)
    if (std::ranges::find(excluded, other) == excluded.end()) remaining.push_back(other);
  return remaining;
}

void StarNetwork::shrinksWere(std::span<const Rank> excluded, std::uint64_t number) {
  const std::lock_guard lock(shrinksMutex_);
  shrinks_[remainingWithout(excluded)] = number;
}

Result<std::shared_ptr<CommunicatorNetwork>> StarNetwork::shrink(std::span<const Rank> excluded, Nanoseconds limit,
                                                                 const GivenUp& givenUp) {
  const auto deadline = std::chrono::steady_clock::now() + limit;
  const std::vector<Rank> remaining = remainingWithout(excluded);
  std::vector<Member> members;
  Rank newRank = -1;
  for (const Rank other : remaining) {
    if (other == rank()) newRank = static_cast<Rank>(members.size());
    members.push_back(member_->members()[static_cast<std::size_t>(other)]);
  }
  if (newRank < 0) return log::decided(Error::invalidArgument("a rank cannot exclude itself"));
  // Not from the counter of splits: those may have succeeded on some ranks only before the communicator broke. And one
  // counter for all shrinks would differ after one that a rank had no part in.
  constexpr std::uint64_t shrinkMark = 0x736872696e6b;
  CommunicatorId newId = 0;
  {
    const std::lock_guard lock(shrinksMutex_);
    newId = hashOf({id(), shrinkMark, shrinks_[remaining]++});
  }
  for (const Rank other : remaining) newId = hashOf({newId, static_cast<std::uint64_t>(other)});
  if (members.size() == 1) return aloneNetwork(newId, secret());
  // Ranks notice a failure at different times: whoever comes long before the new rank 0 is turned away, and comes
  // again.
  if (newRank == 0) StarCenter::open(member_->reactor(), newId, secret(), members);
  while (true) {
    auto member = std::make_shared<StarMember>(member_->reactor(), newId, secret(), newRank, members);
    auto network = std::make_shared<StarNetwork>(member);
    const auto connected = member->connect(deadline - std::chrono::steady_clock::now(), givenUp);
    if (connected) return std::shared_ptr<CommunicatorNetwork>(network);
    if (newRank == 0 || !member->turnedAway() || std::chrono::steady_clock::now() >= deadline) return connected.error();
  }
}

}  // namespace falcon::bootstrap
