// The middle of a communicator's star. Lives on rank 0's reactor, which works on while rank 0 itself computes; rank 0
// is a member like all others. Once rank 0's process has ended it lives with the lowest rank that is left.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>

#include "bootstrap/member.h"
#include "bootstrap/message_channel.h"
#include "bootstrap/pulse.h"
#include "bootstrap/star_message.h"
#include "transport/alarm.h"

namespace falcon::bootstrap {

/// Belongs to the reactor's expectation; it is gone when all members are. When the rank that it lives with leaves
/// before others, the center stays for them until that rank's process ends; then one of them inherits it. Where one
/// cannot come, it stays until all others have come and heard why, for as long as making a communicator may take. All
/// on the reactor's thread.
class StarCenter : public std::enable_shared_from_this<StarCenter> {
 public:
  static void open(std::shared_ptr<transport::Reactor> reactor, CommunicatorId id, const transport::Secret& secret,
                   std::vector<Member> members);
  /// On the reactor of `heir`, when the process of the center before has ended in order: for those who have not left.
  /// It passes on who dies, gives up and leaves; nothing can be gathered any more, since one is missing for ever.
  static void inherit(std::shared_ptr<transport::Reactor> reactor, CommunicatorId id, const transport::Secret& secret,
                      std::vector<Member> members, Rank heir, const std::set<Rank>& left);
  /// Made by open() and inherit().
  StarCenter(std::shared_ptr<transport::Reactor> reactor, CommunicatorId id, std::vector<Member> members, Rank host);

 private:
  enum class Presence { awaited, here, left, dead, withdrawn };
  struct Seat {
    Presence presence = Presence::awaited;
    std::shared_ptr<MessageChannel> channel;
    std::unique_ptr<Pulse> pulse;
  };
  using Parts = std::vector<std::optional<std::string>>;

  static void expect(const std::shared_ptr<StarCenter>& center, const transport::Secret& secret);
  /// Those who have not come yet are waited for so long, though all others have gone.
  void awaitLate(Nanoseconds limit);
  void welcome(FileDescriptor socket, const transport::Hello& hello);
  void welcomePulse(FileDescriptor socket, const transport::Hello& hello);
  void withdrawn(Rank rank, const std::string& why);
  std::string noDescriptorFor(Rank rank) const;
  void receive(Rank rank, std::string_view bytes);
  void gather(Rank rank, StarMessage message);
  void completeGather(std::uint64_t sequence);
  void late(Rank rank, const StarMessage& message);
  void goodbye(Rank rank);
  void noted(Rank rank);
  void gone(Rank rank, const std::string& why);
  void fail(const std::string& text);
  void toAllHere(const StarMessage& message, Rank except = -1);
  void endIfEmpty();
  Seat& seat(Rank rank) { return seats_[static_cast<std::size_t>(rank)]; }
  int count(Presence presence) const;
  std::string name(Rank rank) const { return nameOf(rank, members_); }

  const std::shared_ptr<transport::Reactor> reactor_;
  const CommunicatorId id_;
  const std::vector<Member> members_;
  const Rank host_;  // whose process this is
  std::vector<Seat> seats_;
  std::map<std::uint64_t, Parts> gathers_;  // by sequence
  std::set<Rank> notYetNoted_;              // that the host has left
  std::string failure_;                     // encoded; empty: healthy
  std::unique_ptr<transport::Alarm> late_;  // how long those who have not come may take
  bool awaitsLate_ = false;
};

}  // namespace falcon::bootstrap
