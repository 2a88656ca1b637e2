// CommunicatorNetwork over a star.
#pragma once

#include <map>
#include <mutex>
#include <vector>

#include "base/contained.h"
#include "bootstrap/communicator_network.h"
#include "bootstrap/star_member.h"

namespace falcon::bootstrap {

class StarNetwork final : public CommunicatorNetwork {
 public:
  explicit StarNetwork(std::shared_ptr<StarMember> member) : member_(std::move(member)) {}
  /// Without memory for a goodbye the others take the end of the connection for it.
  ~StarNetwork() override {
    contained([this] { member_->leave(); }, [](const char*) {});
  }

  /// Forms a star of at least two members; rank 0 opens the center. Blocks until all are connected.
  static Result<std::shared_ptr<CommunicatorNetwork>> form(std::shared_ptr<transport::Reactor> reactor,
                                                           CommunicatorId id, const transport::Secret& secret,
                                                           Rank rank, std::vector<Member> members, Nanoseconds limit,
                                                           const GivenUp& givenUp);

  CommunicatorId id() const override { return member_->id(); }
  const transport::Secret& secret() const override { return member_->secret(); }
  Rank rank() const override { return member_->rank(); }
  int size() const override { return static_cast<int>(member_->members().size()); }
  Result<std::vector<std::string>> allGather(std::string_view mine, Nanoseconds limit,
                                             const GivenUp& givenUp) override {
    return member_->gather(mine, limit, givenUp);
  }
  Result<std::shared_ptr<CommunicatorNetwork>> split(int color, int key, Nanoseconds limit,
                                                     const GivenUp& givenUp) override;
  Result<std::shared_ptr<CommunicatorNetwork>> shrink(std::span<const Rank> excluded, Nanoseconds limit,
                                                      const GivenUp& givenUp) override;
  void shrinksWere(std::span<const Rank> excluded, std::uint64_t number) override;
  bool hasLeft(Rank rank) const override { return member_->hasLeft(rank); }
  /// Who keeps watch over the communicator, while this rank is connected with it.
  std::optional<Rank> center() const { return member_->center(); }
  void waitForNobody() override { member_->waitForNobody(); }
  void abort(std::string_view reason) override { member_->abort(reason); }
  std::optional<Error> failure() const override { return member_->failure(); }
  bool isBroken() const override { return member_->isBroken(); }
  void onFailure(std::function<void(const Error&)> handler) override { member_->onFailure(std::move(handler)); }
  void onDeparture(std::function<void(Rank)> handler) override { member_->onDeparture(std::move(handler)); }

 private:
  std::vector<Rank> remainingWithout(std::span<const Rank> excluded) const;

  const std::shared_ptr<StarMember> member_;
  std::atomic<std::uint64_t> splits_{0};
  std::mutex shrinksMutex_;
  std::map<std::vector<Rank>, std::uint64_t> shrinks_;  ///< so far, by who remained: only they count them alike
};

/// The network of a single rank, with a secret of its own.
std::shared_ptr<CommunicatorNetwork> aloneNetwork(CommunicatorId id, const transport::Secret& secret);

}  // namespace falcon::bootstrap
