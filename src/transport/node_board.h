// One piece of memory that all ranks of a communicator share when they live on one node: there they publish small
// messages whole, and of large ones the address.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "base/types.h"
#include "transport/doorbell.h"
#include "transport/shared_segment.h"

namespace falcon::transport {

/// Operations are numbered from 1; every rank runs them in the same order. Each rank has slots, used in turn, that hold
/// short messages, and a few rooms for longer ones: one may be written again once every rank has completed the
/// operation that used it before (see mayPost()). Thread-safe between ranks; one thread at a time acts for a rank.
class NodeBoard {
 public:
  /// Operations that a rank may be ahead of the slowest one: many, so that a root that only sends need not wait for
  /// ranks that have no core just now; few where the message is long.
  static constexpr std::uint64_t slotCountFor(int ranks) { return ranks <= 16 ? 64 : 16; }
  static constexpr std::uint64_t roomCount = 4;
  /// The longest message that fits into a slot.
  static constexpr std::size_t slotBytes = 1 << 10;
  /// More ranks than this on one node have no board: its size grows with them.
  static constexpr int mostRanks = 256;
  /// The longest message that fits into a room. A board takes 3 MiB for 16 ranks, and 13 MiB for 256.
  static constexpr std::size_t payloadBytesFor(int ranks) { return ranks <= 16 ? 32 << 10 : 8 << 10; }

  /// How far a rank is with an operation, for the others to see.
  enum class Stage : std::uint64_t {
    posted = 1,  ///< its message, or the address, is there
    output = 2   ///< its part of the result can be read from its output
  };

  /// What a rank says about its part in an operation.
  struct Notice {
    std::uint64_t signature = 0;  ///< of the call; equal on all ranks, or the calls do not fit
    std::uint64_t input = 0;      ///< address of the message, or where on the board it is
    std::uint64_t output = 0;     ///< address of the result
  };

  /// Values of Notice::input that are no addresses.
  static constexpr std::uint64_t inSlot = 0, inRoom = 1;

  /// Whom a sleeping rank waits for.
  static constexpr Rank anyone = -1;

  /// A new board with a name, for others to open.
  static Result<std::unique_ptr<NodeBoard>> create(int ranks);
  /// Ranks of one process share one mapping.
  static Result<std::unique_ptr<NodeBoard>> open(const std::string& name, int ranks);
  /// Tells the others that this rank has left, if it ever entered.
  ~NodeBoard();

  std::size_t payloadBytes() const { return payloadBytesFor(ranks_); }
  const std::string& name() const { return name_; }
  /// All have opened it, or it is not to be used: nobody can open it any more.
  void dropName();
  /// Once, before anything below. `doorbells[r]` wakes rank r.
  void enter(Rank self, std::vector<std::shared_ptr<Doorbell>> doorbells);
  /// This rank has given its operation up: its memory is not what it published any more. Nobody is woken: why it gave
  /// up concerns the others or not, and they learn it elsewhere.
  void giveUp() { cell(self_).gaveUp.store(true, std::memory_order_seq_cst); }

  /// Where a message of `bytes` is to be posted. Of an address nothing is in the room, so 0 will do.
  static constexpr std::uint64_t placeFor(std::size_t bytes) { return bytes <= slotBytes ? inSlot : inRoom; }
  /// Whether that place is free for `operation`; otherwise `blocker()` is a rank that has not completed `needed()`.
  bool mayPost(std::uint64_t operation, std::uint64_t place);
  Rank blocker() const { return blocker_; }
  std::uint64_t needed() const { return needed_; }
  /// Where the message goes.
  std::byte* payload(std::uint64_t operation, std::uint64_t place) { return payloadAt(self_, operation, place); }
  void post(std::uint64_t operation, const Notice& notice);
  void advance(std::uint64_t operation, Stage stage) { publish(slot(self_, operation).stage, word(operation, stage)); }
  /// This rank has read all that it reads in `operation`, which is its latest.
  void complete(std::uint64_t operation) { publish(cell(self_).completed, operation); }

  bool reached(Rank peer, std::uint64_t operation, Stage stage) const {
    return slot(peer, operation).stage.load(std::memory_order_seq_cst) >= word(operation, stage);
  }
  bool hasCompleted(Rank peer, std::uint64_t operation) const {
    return cell(peer).completed.load(std::memory_order_seq_cst) >= operation;
  }
  /// Of a peer that has reached `posted`.
  Notice notice(Rank peer, std::uint64_t operation) const;
  /// Of a peer whose notice says that its message is on the board.
  const std::byte* payload(Rank peer, std::uint64_t operation, std::uint64_t place) const {
    return payloadAt(peer, operation, place);
  }
  /// What has been read from its memory meanwhile does not count.
  bool hasGivenUp(Rank peer) const { return cell(peer).gaveUp.load(std::memory_order_seq_cst) || hasLeft(peer); }
  /// What it put into its slots before it left still counts.
  bool hasLeft(Rank peer) const { return cell(peer).left.load(std::memory_order_seq_cst); }

  /// Before sleeping on the own doorbell: announce, look again, sleep, withdraw. Between announcing and withdrawing,
  /// whatever `awaited` publishes rings.
  void announceSleep(Rank awaited);
  void withdrawSleep();

 private:
  static constexpr std::size_t cacheLine = 64;

  // The message begins right behind, in the same cache line: 8 bytes travel with the word that announces them.
  struct Slot {
    alignas(32) std::atomic<std::uint64_t> stage;
    std::atomic<std::uint64_t> signature, input, output;
  };
  /// One rank's part; a cache line for each of those that change for different reasons. The slots follow, then the
  /// rooms.
  struct Cell {
    alignas(64) std::atomic<std::uint64_t> completed;
    alignas(64) std::atomic<std::int32_t> asleep;  // 0: awake; else awaited + 2
    std::atomic<bool> left, gaveUp;
  };
  struct Memory {
    alignas(64) std::atomic<std::uint32_t> sleepers;
  };

  NodeBoard(std::shared_ptr<SharedSegment> segment, int ranks);
  static constexpr std::size_t slotStride = cacheLine + slotBytes;
  static constexpr std::size_t slotsBytes(int ranks) { return slotCountFor(ranks) * slotStride; }
  static constexpr std::size_t cellStride(int ranks) {
    return sizeof(Cell) + slotsBytes(ranks) + roomCount * payloadBytesFor(ranks);
  }
  static constexpr std::size_t bytesFor(int ranks) { return sizeof(Memory) + ranks * cellStride(ranks); }
  static constexpr std::uint64_t word(std::uint64_t operation, Stage stage) {
    return operation << 2 | static_cast<std::uint64_t>(stage);
  }
  // No constructor runs: zeroes are a new board, and another rank may be on it already.
  Cell& cell(Rank rank) const { return *reinterpret_cast<Cell*>(cells_ + rank * cellStride_); }
  Slot& slot(Rank rank, std::uint64_t operation) const {
    std::byte* slots = cells_ + rank * cellStride_ + sizeof(Cell);
    return *reinterpret_cast<Slot*>(slots + operation % slotCount_ * slotStride);
  }
  std::byte* payloadAt(Rank rank, std::uint64_t operation, std::uint64_t place) const {
    if (place == inSlot) return reinterpret_cast<std::byte*>(&slot(rank, operation)) + sizeof(Slot);
    return cells_ + rank * cellStride_ + sizeof(Cell) + slotsBytes_ + operation % roomCount * payloadBytesFor(ranks_);
  }
  void publish(std::atomic<std::uint64_t>& where, std::uint64_t value) {
    // Sequentially consistent, as is the sleeper's announcement: either this sees the sleeper or the sleeper sees the
    // value.
    where.store(value, std::memory_order_seq_cst);
    if (memory_->sleepers.load(std::memory_order_seq_cst) != 0) [[unlikely]]
      wake();
  }
  void wake();

  std::shared_ptr<SharedSegment> segment_;
  std::string name_;
  Memory* memory_;
  std::byte* cells_;
  const int ranks_;
  const std::size_t slotCount_ = slotCountFor(ranks_), slotsBytes_ = slotsBytes(ranks_),
                    cellStride_ = cellStride(ranks_);
  const pid_t process_;
  Rank self_ = -1;
  Rank blocker_ = -1;
  std::uint64_t needed_ = 0;
  std::vector<std::shared_ptr<Doorbell>> doorbells_;
  std::uint64_t completedByAll_ = 0;  // as far as this rank knows
};

}  // namespace falcon::transport
