#include "transport/node_board.h"

#include <unistd.h>

#include <bit>
#include <map>
#include <mutex>

#include "base/per_process.h"

namespace falcon::transport {
namespace {

/// The boards that are mapped in this process, by name.
struct Mapped {
  std::mutex mutex;
  std::map<std::string, std::weak_ptr<SharedSegment>> byName;

  /// With the mutex. Those that are gone are forgotten.
  void add(const std::shared_ptr<SharedSegment>& segment, const std::string& name) {
    std::erase_if(byName, [](const auto& entry) { return entry.second.expired(); });
    byName[name] = segment;
  }
};
constinit PerProcess<Mapped> mappedHere;

}  // namespace

NodeBoard::NodeBoard(std::shared_ptr<SharedSegment> segment, int ranks)
    : segment_(std::move(segment)), name_(segment_->name()), ranks_(ranks), process_(getpid()) {
  memory_ = reinterpret_cast<Memory*>(segment_->memory().data());
  cells_ = segment_->memory().data() + sizeof(Memory);
}

Result<std::unique_ptr<NodeBoard>> NodeBoard::create(int ranks) {
  static_assert(sizeof(Memory) % alignof(Cell) == 0 && sizeof(Line) == cacheLine);
  static_assert(std::atomic<std::uint64_t>::is_always_lock_free);
  static_assert(std::has_single_bit(lineCountFor(16)) && std::has_single_bit(lineCountFor(17)));
  static_assert(std::has_single_bit(slotCountFor(16)) && std::has_single_bit(slotCountFor(17)));
  if (ranks > mostRanks) return Error::system("{} ranks are too many for a board in shared memory", ranks);
  auto segment = SharedSegment::create(bytesFor(ranks));
  if (!segment) return segment.error();
  auto shared = std::make_shared<SharedSegment>(std::move(*segment));
  Mapped& mapped = mappedHere.get();
  const std::lock_guard lock(mapped.mutex);
  mapped.add(shared, shared->name());
  return std::unique_ptr<NodeBoard>(new NodeBoard(std::move(shared), ranks));
}

Result<std::unique_ptr<NodeBoard>> NodeBoard::open(const std::string& name, int ranks) {
  Mapped& mapped = mappedHere.get();
  const std::lock_guard lock(mapped.mutex);
  const auto known = mapped.byName.find(name);
  std::shared_ptr<SharedSegment> shared = known == mapped.byName.end() ? nullptr : known->second.lock();
  if (!shared) {
    auto segment = SharedSegment::open(name, bytesFor(ranks));
    if (!segment) return segment.error();
    shared = std::make_shared<SharedSegment>(std::move(*segment));
    mapped.add(shared, name);
  }
  return std::unique_ptr<NodeBoard>(new NodeBoard(std::move(shared), ranks));
}

NodeBoard::~NodeBoard() {
  // A forked child only has a copy of this object: the rank is still there.
  if (self_ < 0 || getpid() != process_) return;
  cell(self_).left.store(true, std::memory_order_seq_cst);
  if (memory_->sleepers.load(std::memory_order_seq_cst) != 0) wakeAll(What::anything, 0);
}

void NodeBoard::dropName() {
  segment_->dropName();
}

void NodeBoard::enter(Rank self, std::vector<std::shared_ptr<Doorbell>> doorbells, bool mayRelyOnHeavyFences) {
  if (!mayRelyOnHeavyFences || !takePartInHeavyFences()) memory_->needsFences.store(true, std::memory_order_relaxed);
  self_ = self;
  doorbells_ = std::move(doorbells);
  std::byte* const memory = segment_->memory().data();
  if (Mailboxes::existFor(ranks_)) mail_.emplace(*this, memory + boxesAt(ranks_), ranks_, self_);
  if (SignalBoard::existsFor(ranks_)) signals_.emplace(*this, memory + signalsAt(ranks_), ranks_, self_);
}

bool NodeBoard::mayPostAfterAll(std::uint64_t operation, std::uint64_t ahead) {
  if (blockedAt_ != operation) needed_ = operation - ahead;
  std::uint64_t least = operation;
  for (Rank rank = 0; rank < ranks_; ++rank) {
    const std::uint64_t completed = cell(rank).completed.load(std::memory_order_seq_cst);
    if (completed < needed_) {
      if (ahead > roomCount) needed_ = operation - ahead / 2;
      blockedAt_ = operation;
      blocker_ = rank;
      return false;
    }
    least = std::min(least, completed);
  }
  completedByAll_ = least;
  return true;
}

void NodeBoard::announceSleep(const Awaited& awaited) {
  Cell& mine = cell(self_);
  mine.awaitedWhat.store(awaited.what, std::memory_order_relaxed);
  mine.awaitedValue.store(awaited.value, std::memory_order_relaxed);
  mine.asleep.store(awaited.rank + 2, std::memory_order_relaxed);
  memory_->sleepers.fetch_add(1, std::memory_order_seq_cst);
  if (memory_->needsFences.load(std::memory_order_relaxed))
    std::atomic_thread_fence(std::memory_order_seq_cst);
  else
    heavyFence();
}

void NodeBoard::withdrawSleep() {
  memory_->sleepers.fetch_sub(1, std::memory_order_relaxed);
  cell(self_).asleep.store(0, std::memory_order_relaxed);
}

void NodeBoard::wakeAll(What what, std::uint64_t value) {
  for (Rank rank = 0; rank < ranks_; ++rank) wake(rank, what, value);
}

// Whatever of the three is read too early: then the fence that the sleeper bears comes later, and it sees the value.
void NodeBoard::wake(Rank rank, What what, std::uint64_t value) {
  const Cell& theirs = cell(rank);
  const std::int32_t awaited = theirs.asleep.load(std::memory_order_seq_cst);
  if (rank == self_ || awaited == 0) return;
  const What awaitedWhat = theirs.awaitedWhat.load(std::memory_order_seq_cst);
  const bool concerns =
      awaited == Awaited::anyone + 2 ||
      (awaited == self_ + 2 && (awaitedWhat == What::anything ||
                                (awaitedWhat == what && value >= theirs.awaitedValue.load(std::memory_order_seq_cst))));
  if (concerns || cell(self_).left.load(std::memory_order_relaxed)) doorbells_[rank]->ring();
}

}  // namespace falcon::transport
