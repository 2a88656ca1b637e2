// How the ranks of one node come to share a board, and agree that they do. Takes no round of messages of its own.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "collectives/direct_member.h"
#include "collectives/member_info.h"

namespace falcon::collectives {

/// One rank's part, at the making of a communicator: offer(), exchange the offers, attach(), exchange vote(), agree().
class DirectSetup {
 public:
  DirectSetup(Rank self, int ranks) : self_(self), ranks_(ranks) {}

  /// Adds what the others need to `mine`. Rank 0 makes the board.
  void offer(MemberOffer& mine);
  void attach(const std::vector<MemberOffer>& offers);
  std::string vote() const;
  /// Null where one of them cannot; then connections do it all. Says why, once.
  std::unique_ptr<DirectMember> agree(const std::vector<std::string>& votes);

 private:
  void attachBoard(const std::vector<MemberOffer>& offers);
  void attachMemories(const std::vector<MemberOffer>& offers);

  const Rank self_;
  const int ranks_;
  std::unique_ptr<transport::NodeBoard> board_;
  std::vector<transport::PeerMemory> memories_;
  bool coresSuffice_ = false;
  std::string obstacle_;  // of the first thing that did not work; empty: nothing to say
};

}  // namespace falcon::collectives
