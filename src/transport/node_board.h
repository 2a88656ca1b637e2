// One piece of memory that all ranks of a communicator share when they live on one node: there they publish small
// messages whole, and of large ones the address.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/asymmetric_fence.h"
#include "base/prefetch.h"
#include "base/types.h"
#include "transport/doorbell.h"
#include "transport/mailboxes.h"
#include "transport/shared_segment.h"
#include "transport/signal_board.h"

namespace falcon::transport {

/// Operations are numbered from 1; every rank runs them in the same order. Each rank has lines, used in turn, that
/// announce messages and hold the shortest ones, slots for short ones, and a few rooms for longer ones: each may be
/// written again once every rank has completed the operation that used it before (see mayPost()). Thread-safe between
/// ranks; one thread at a time acts for a rank.
class NodeBoard {
 public:
  /// Operations that a rank may be ahead of the slowest one: many, so that a root that only sends need not wait for
  /// ranks that have no core just now; few where the message is long.
  /// Powers of two, so that to find a line takes no division (four of them took a tenth of the shortest calls).
  static constexpr std::uint64_t lineCountFor(int ranks) { return ranks <= 16 ? 256 : 32; }
  static constexpr std::uint64_t slotCountFor(int ranks) { return ranks <= 16 ? 64 : 16; }
  static constexpr std::uint64_t roomCount = 4;
  /// The longest message that fits into the cache line that announces it, and into a slot.
  static constexpr std::size_t lineBytes = 32, slotBytes = 1 << 10;
  /// More ranks than this on one node have no board: its size grows with them.
  static constexpr int mostRanks = 256;
  /// The longest message that fits into a room.
  static constexpr std::size_t payloadBytesFor(int ranks) {
    return ranks <= 8 ? 256 << 10 : ranks <= 16 ? 128 << 10 : 8 << 10;
  }

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
  static constexpr std::uint64_t inLine = 0, inSlot = 1, inRoom = 2;
  static constexpr bool isOnBoard(std::uint64_t input) { return input <= inRoom; }

  /// What a sleeping rank waits for: only that rings. Who runs ahead publishes hundreds of times what a sleeper need
  /// not know (reduce of 8 B among 8 ranks on 2 cores took 6.7 us, of which most went into waking and sleeping again).
  struct Awaited {
    enum class What : std::uint8_t { anything, stage, completed, taken, message };
    static constexpr Rank anyone = -1;
    Rank rank = anyone;
    What what = What::anything;
    std::uint64_t value = 0;  ///< of the word that says so: this much or more
    bool operator==(const Awaited&) const = default;
  };
  static constexpr Awaited awaitedStage(Rank peer, std::uint64_t operation, Stage stage) {
    return {peer, Awaited::What::stage, word(operation, stage)};
  }
  static constexpr Awaited awaitedCompletion(Rank peer, std::uint64_t operation) {
    return {peer, Awaited::What::completed, operation};
  }
  /// See take().
  static constexpr Awaited awaitedTaking(Rank reader, std::uint64_t operation, int peers) {
    return {reader, Awaited::What::taken, takenWord(operation, peers)};
  }
  /// A message from it, or that it takes one.
  static constexpr Awaited awaitedMessage(Rank peer) { return {peer, Awaited::What::message, 0}; }

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
  /// Once, on all ranks before anything below on any. `doorbells[r]` wakes rank r. Heavy fences are relied on where all
  /// ranks may and can. None should where they have no cores of their own: who shares a core sleeps often, and disturbs
  /// the others each time (with 8 ranks on 2 cores, a reduce of 64 KiB took 100 us instead of 66).
  void enter(Rank self, std::vector<std::shared_ptr<Doorbell>> doorbells, bool mayRelyOnHeavyFences = true);
  /// This rank has given its operation up: its memory is not what it published any more. Nobody is woken: why it gave
  /// up concerns the others or not, and they learn it elsewhere.
  void giveUp() { cell(self_).gaveUp.store(true, std::memory_order_seq_cst); }

  /// Where a message of `bytes` is to be posted. Of an address there is nothing but the line.
  static constexpr std::uint64_t placeFor(std::size_t bytes) {
    return bytes <= lineBytes ? inLine : bytes <= slotBytes ? inSlot : inRoom;
  }
  /// Whether that place is free for `operation`; otherwise `blocker()` is a rank that has not completed `needed()`.
  /// Where there are many places it stays so until half of them are free: who is ahead by all of them would else be
  /// stopped at every further one, and ask for the word that the slowest is just writing.
  bool mayPost(std::uint64_t operation, std::uint64_t place) {
    const std::uint64_t ahead = place == inLine ? lineCount_ : place == inSlot ? slotCount_ : roomCount;
    return operation <= completedByAll_ + ahead || mayPostAfterAll(operation, ahead);
  }
  Rank blocker() const { return blocker_; }
  std::uint64_t needed() const { return needed_; }
  /// Where the message goes.
  std::byte* payload(std::uint64_t operation, std::uint64_t place) { return payloadAt(self_, operation, place); }
  void post(std::uint64_t operation, const Notice& notice) {
    Line& mine = line(self_, operation);
    mine.signature.store(notice.signature, std::memory_order_relaxed);
    mine.input.store(notice.input, std::memory_order_relaxed);
    mine.output.store(notice.output, std::memory_order_relaxed);
    publish(mine.stage, What::stage, word(operation, Stage::posted));
    // So that the next ones need not wait for the line.
    prefetchForWriting(&line(self_, operation + 4));
  }
  void advance(std::uint64_t operation, Stage stage) {
    publish(line(self_, operation).stage, What::stage, word(operation, stage));
  }
  /// This rank needs nothing any more of what the first `peers` ranks have posted, in the order in which the operation
  /// reads; `peer` is the last of them, and is woken where it sleeps for that: it need not wait until this rank has
  /// read all the others' (gather of 1 MiB among 8: seven of them woken at its end, each 20 us after the one before).
  void take(Rank peer, std::uint64_t operation, int peers) {
    const std::uint64_t value = takenWord(operation, peers);
    if (storeAndLook(cell(self_).taken, value)) [[unlikely]]
      wake(peer, What::taken, value);
  }
  bool hasTaken(Rank reader, std::uint64_t operation, int peers) const {
    return cell(reader).taken.load(std::memory_order_seq_cst) >= takenWord(operation, peers);
  }
  /// This rank has read all that it reads in `operation`, which is its latest.
  void complete(std::uint64_t operation) { publish(cell(self_).completed, What::completed, operation); }

  bool reached(Rank peer, std::uint64_t operation, Stage stage) const {
    return line(peer, operation).stage.load(std::memory_order_seq_cst) >= word(operation, stage);
  }
  bool hasCompleted(Rank peer, std::uint64_t operation) const {
    return cell(peer).completed.load(std::memory_order_seq_cst) >= operation;
  }
  /// Of a peer that has reached `posted`.
  Notice notice(Rank peer, std::uint64_t operation) const {
    const Line& theirs = line(peer, operation);
    return {theirs.signature.load(std::memory_order_relaxed), theirs.input.load(std::memory_order_relaxed),
            theirs.output.load(std::memory_order_relaxed)};
  }
  /// Of a peer whose notice says that its message is on the board.
  const std::byte* payload(Rank peer, std::uint64_t operation, std::uint64_t place) const {
    return payloadAt(peer, operation, place);
  }
  /// What has been read from its memory meanwhile does not count.
  bool hasGivenUp(Rank peer) const { return cell(peer).gaveUp.load(std::memory_order_seq_cst) || hasLeft(peer); }
  /// What it put into its slots before it left still counts.
  bool hasLeft(Rank peer) const { return cell(peer).left.load(std::memory_order_seq_cst); }
  /// It has left, and not because it gave up: why it did that is for others to tell.
  bool hasLeftInOrder(Rank peer) const { return hasLeft(peer) && !cell(peer).gaveUp.load(std::memory_order_seq_cst); }

  /// Before sleeping on the own doorbell: announce, look again, sleep, withdraw. Between announcing and withdrawing,
  /// `awaited` rings, and whoever leaves.
  void announceSleep(const Awaited& awaited);
  void withdrawSleep();

  /// For messages between two ranks; null where there are too many ranks. After enter().
  Mailboxes* mail() { return mail_ ? &*mail_ : nullptr; }
  /// The same for one-sided messages.
  SignalBoard* signals() { return signals_ ? &*signals_ : nullptr; }
  /// Stores a word that only `reader` looks at, and wakes it where it sleeps for that.
  void publishTo(Rank reader, std::atomic<std::uint64_t>& where, std::uint64_t value) {
    if (storeAndLook(where, value)) [[unlikely]]
      wake(reader, What::message, value);
  }

 private:
  using What = Awaited::What;
  static constexpr std::size_t cacheLine = 64;

  // 8 bytes travel with the word that announces them.
  struct Line {
    alignas(cacheLine) std::atomic<std::uint64_t> stage;
    std::atomic<std::uint64_t> signature, input, output;
    std::byte message[lineBytes];
  };
  /// One rank's part; a cache line for each of those that change for different reasons. The lines follow, the slots,
  /// and the rooms.
  struct Cell {
    alignas(64) std::atomic<std::uint64_t> completed;
    alignas(64) std::atomic<std::uint64_t> taken;
    alignas(64) std::atomic<std::int32_t> asleep;  // 0: awake; else the awaited rank + 2
    std::atomic<What> awaitedWhat;
    std::atomic<bool> left, gaveUp;
    std::atomic<std::uint64_t> awaitedValue;
  };
  struct Memory {
    alignas(64) std::atomic<std::uint32_t> sleepers;
    std::atomic<bool> needsFences;  // a rank does not rely on heavy ones
  };

  NodeBoard(std::shared_ptr<SharedSegment> segment, int ranks);
  static constexpr std::size_t slotsAt(int ranks) { return sizeof(Cell) + lineCountFor(ranks) * sizeof(Line); }
  static constexpr std::size_t roomsAt(int ranks) { return slotsAt(ranks) + slotCountFor(ranks) * slotBytes; }
  static constexpr std::size_t cellStride(int ranks) { return roomsAt(ranks) + roomCount * payloadBytesFor(ranks); }
  static constexpr std::size_t boxesAt(int ranks) {
    return (sizeof(Memory) + ranks * cellStride(ranks) + cacheLine - 1) / cacheLine * cacheLine;
  }
  static constexpr std::size_t signalsAt(int ranks) { return boxesAt(ranks) + Mailboxes::bytesFor(ranks); }
  static constexpr std::size_t bytesFor(int ranks) { return signalsAt(ranks) + SignalBoard::bytesFor(ranks); }
  static constexpr std::uint64_t word(std::uint64_t operation, Stage stage) {
    return operation << 2 | static_cast<std::uint64_t>(stage);
  }
  static constexpr std::uint64_t takenWord(std::uint64_t operation, int peers) {
    static_assert(mostRanks < 1 << 9);
    return operation << 9 | static_cast<std::uint64_t>(peers);
  }
  // No constructor runs: zeroes are a new board, and another rank may be on it already.
  Cell& cell(Rank rank) const { return *reinterpret_cast<Cell*>(cells_ + rank * cellStride_); }
  Line& line(Rank rank, std::uint64_t operation) const {
    std::byte* lines = cells_ + rank * cellStride_ + sizeof(Cell);
    return *reinterpret_cast<Line*>(lines + (operation & (lineCount_ - 1)) * sizeof(Line));
  }
  std::byte* payloadAt(Rank rank, std::uint64_t operation, std::uint64_t place) const {
    if (place == inLine) return line(rank, operation).message;
    std::byte* mine = cells_ + rank * cellStride_;
    if (place == inSlot) return mine + slotsAt_ + (operation & (slotCount_ - 1)) * slotBytes;
    return mine + roomsAt_ + operation % roomCount * payloadBytesFor(ranks_);
  }
  /// True: somebody sleeps. Either this sees the sleeper, or the sleeper, who bears the fence, sees the value. A full
  /// fence here would wait in every call until the peer has given up the cache line (50 of 210 ns).
  bool storeAndLook(std::atomic<std::uint64_t>& where, std::uint64_t value) {
    where.store(value, std::memory_order_release);
    lightFence(!memory_->needsFences.load(std::memory_order_relaxed));
    return memory_->sleepers.load(std::memory_order_acquire) != 0;
  }
  void publish(std::atomic<std::uint64_t>& where, What what, std::uint64_t value) {
    if (storeAndLook(where, value)) [[unlikely]]
      wakeAll(what, value);
  }
  bool mayPostAfterAll(std::uint64_t operation, std::uint64_t ahead);
  void wakeAll(What what, std::uint64_t value);
  /// Where it waits for that.
  void wake(Rank rank, What what, std::uint64_t value);

  std::shared_ptr<SharedSegment> segment_;
  std::string name_;
  Memory* memory_;
  std::byte* cells_;
  const int ranks_;
  const std::size_t lineCount_ = lineCountFor(ranks_), slotCount_ = slotCountFor(ranks_), slotsAt_ = slotsAt(ranks_),
                    roomsAt_ = roomsAt(ranks_), cellStride_ = cellStride(ranks_);
  const pid_t process_;
  Rank self_ = -1;
  Rank blocker_ = -1;
  std::uint64_t needed_ = 0, blockedAt_ = 0;
  std::vector<std::shared_ptr<Doorbell>> doorbells_;
  std::uint64_t completedByAll_ = 0;  // as far as this rank knows
  std::optional<Mailboxes> mail_;
  std::optional<SignalBoard> signals_;
};

}  // namespace falcon::transport
