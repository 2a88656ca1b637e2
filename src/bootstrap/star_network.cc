#include "bootstrap/star_network.h"

#include <algorithm>

#include "base/log.h"
#include "bootstrap/random.h"
#include "bootstrap/star_center.h"

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
                                                               Nanoseconds limit,
                                                               const std::function<std::optional<Error>()>& givenUp) {
  if (rank == 0) StarCenter::open(reactor, id, secret, members);
  auto member = std::make_shared<StarMember>(reactor, id, secret, rank, std::move(members));
  auto network = std::make_shared<StarNetwork>(member);
  const auto connected = member->connect(limit, givenUp);
  if (!connected) return connected.error();
  return std::shared_ptr<CommunicatorNetwork>(network);
}

Result<std::shared_ptr<CommunicatorNetwork>> StarNetwork::split(int color, int key, Nanoseconds limit) {
  const auto deadline = std::chrono::steady_clock::now() + limit;
  const std::uint64_t number = splits_++;
  auto texts = allGather(WireWriter().put(std::int32_t{color}).put(std::int32_t{key}).bytes(), limit);
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
              deadline - std::chrono::steady_clock::now(), [this] { return failure(); });
}

}  // namespace falcon::bootstrap
