#include "collectives/direct_setup.h"

#include "base/log.h"
#include "base/parameters.h"

namespace falcon::collectives {
namespace {

using transport::Doorbell;
using transport::NodeBoard;
using transport::PeerMemory;

// Votes: what this rank can do.
constexpr const char* nothing = "n";
constexpr const char* boardOnly = "b";
constexpr const char* boardAndMemory = "m";

/// Those of one process are one.
Result<std::vector<std::shared_ptr<Doorbell>>> openDoorbells(const std::vector<MemberOffer>& offers) {
  std::vector<std::shared_ptr<Doorbell>> doorbells;
  for (std::size_t rank = 0; rank < offers.size(); ++rank) {
    const transport::Peer& peer = offers[rank].info.peer;
    std::shared_ptr<Doorbell> doorbell;
    if (peer.process == *transport::processIdentity())
      doorbell = {&transport::processDoorbell(), [](Doorbell*) {}};  // lives as long as the process
    for (std::size_t before = 0; before < rank && !doorbell; ++before)
      if (offers[before].info.peer.process == peer.process) doorbell = doorbells[before];
    if (!doorbell) {
      auto opened = Doorbell::open(peer.doorbell);
      if (!opened) return opened.error();
      doorbell = std::move(*opened);
    }
    doorbells.push_back(std::move(doorbell));
  }
  return doorbells;
}

}  // namespace

void DirectSetup::offer(MemberOffer& mine) {
  mine.memory = transport::ownMemoryOffer(!parameters::p2pDisable.value());
  if (self_ != 0 || ranks_ < 2 || mine.info.peer.doorbell.empty()) return;
  auto board = NodeBoard::create(ranks_);
  if (!board) {
    obstacle_ = board.error().message();
    return;
  }
  board_ = std::move(*board);
  mine.board = board_->name();
}

void DirectSetup::attach(const std::vector<MemberOffer>& offers) {
  if (offers[0].board.empty() || !shareNode(offers)) {
    board_.reset();
    return;
  }
  coresSuffice_ = mostRanksPerCore(offers) <= 1;
  attachBoard(offers);
  if (board_) attachMemories(offers);
}

void DirectSetup::attachBoard(const std::vector<MemberOffer>& offers) {
  if (!board_) {
    auto opened = NodeBoard::open(offers[0].board, ranks_);
    if (!opened) {
      obstacle_ = opened.error().message();
      return;
    }
    board_ = std::move(*opened);
  }
  auto doorbells = openDoorbells(offers);
  if (doorbells) return board_->enter(self_, std::move(*doorbells), coresSuffice_);
  obstacle_ = doorbells.error().message();
  board_.reset();
}

void DirectSetup::attachMemories(const std::vector<MemberOffer>& offers) {
  for (Rank rank = 0; rank < ranks_; ++rank) {
    auto memory = PeerMemory::attach(offers[rank].memory);
    if (!memory) {
      obstacle_ = fmt::format("rank {}: {}", rank, memory.error().message());
      memories_.clear();
      return;
    }
    memories_.push_back(*memory);
  }
}

std::string DirectSetup::vote() const {
  if (!board_) return nothing;
  return memories_.empty() ? boardOnly : boardAndMemory;
}

std::unique_ptr<DirectMember> DirectSetup::agree(const std::vector<std::string>& votes) {
  bool all = true, memory = true;
  for (const std::string& vote : votes) {
    all = all && (vote == boardOnly || vote == boardAndMemory);
    memory = memory && vote == boardAndMemory;
  }
  if (!obstacle_.empty())
    log::info("{} between the ranks of this node, through connections: {}",
              all ? "large messages go" : "all messages go", obstacle_);
  if (self_ == 0 && board_) board_->dropName();
  if (!all) {
    board_.reset();
    return nullptr;
  }
  if (!memory) memories_.clear();
  return std::make_unique<DirectMember>(std::move(board_), std::move(memories_), ranks_, coresSuffice_);
}

}  // namespace falcon::collectives
