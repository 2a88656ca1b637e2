#include "instrument/call_log.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <boost/interprocess/anonymous_shared_memory.hpp>
#include <cerrno>
#include <cstring>
#include <utility>

#include "base/fixed_text.h"
#include "base/own_folder.h"
#include "base/owned.h"
#include "base/prefetch.h"
#include "base/reserve_file.h"
#include "base/system_error.h"
#include "instrument/mapped_file.h"

namespace falcon::instrument {
namespace {

namespace ipc = boost::interprocess;

// Rooms of the tables. What does not fit is left out, and said where it can be: nothing ever waits for room.
constexpr std::uint32_t flightRoom = 1024;
constexpr std::uint32_t communicatorRoom = 256;
constexpr std::uint32_t memberRoom = 8192;
constexpr std::uint32_t makingRoom = 64;
constexpr std::uint32_t transferRoom = 2048;  // some iterations of a job with many channels
constexpr std::uint32_t labelRoom = 1024;
static_assert(labelRoom * sizeof(LabelSlot) % callLogHeaderBytes == 0, "the other rings follow");
static_assert(transferRoom * sizeof(TransferSlot) % callLogHeaderBytes == 0, "the ring of calls follows");
// In a table that is nearly full a search goes no further.
constexpr std::uint32_t longestSearch = 64;

struct FileSections {
  explicit FileSections(std::uint32_t capacity) {
    place(SectionKind::inFlight, sizeof(CallLogSlot), flightRoom);
    place(SectionKind::communicators, sizeof(CommunicatorSlot), communicatorRoom);
    place(SectionKind::members, sizeof(MemberSlot), memberRoom);
    place(SectionKind::makings, sizeof(MakingSlot), makingRoom);
    // The rings are the last and begin a page: their memory is given back at the end.
    bytes = (bytes + callLogHeaderBytes - 1) / callLogHeaderBytes * callLogHeaderBytes;
    place(SectionKind::labels, sizeof(LabelSlot), labelRoom);
    place(SectionKind::transfers, sizeof(TransferSlot), transferRoom);
    place(SectionKind::calls, sizeof(CallLogSlot), capacity);
  }
  void place(SectionKind kind, std::uint32_t stride, std::uint32_t count) {
    sections[static_cast<std::size_t>(kind)] = {bytes, stride, count};
    bytes += (std::uint64_t{stride} * count + 63) / 64 * 64;
  }

  std::uint64_t bytes = callLogHeaderBytes;
  CallLogSection sections[sectionCount] = {};
};

void storeWords(CallLogSlot& slot, const CallRecord& record) noexcept {
  const auto store = [&]<std::size_t... at>(std::index_sequence<at...>) {
    const auto word = [&](std::size_t place) {
      std::uint64_t value;
      std::memcpy(&value, reinterpret_cast<const char*>(&record) + place * sizeof value, sizeof value);
      return value;
    };
    (slot.words[at].store(word(at), std::memory_order_relaxed), ...);
  };
  store(std::make_index_sequence<std::tuple_size_v<CallWords>>());
}

// 0 and 1 mean that the slot is free, or being written.
std::uint64_t inFlightSince(Nanoseconds enter) noexcept {
  return std::max<std::uint64_t>(2, static_cast<std::uint64_t>(enter.count()));
}

}  // namespace

const char* nameOf(JobState state) {
  constexpr const char* names[] = {"starting", "tracking", "profiling", "validating", "mitigating", "off", "suspended"};
  return static_cast<size_t>(state) < std::size(names) ? names[static_cast<size_t>(state)] : "unknown";
}

Result<std::unique_ptr<CallLog>> CallLog::create(const std::string& path, const CallLogIdentity& identity,
                                                 std::uint32_t capacity) {
  const FileSections layout(capacity);
  std::unique_ptr<CallLog> log(new CallLog);
  if (path.empty()) {
    log->region_ = ipc::anonymous_shared_memory(layout.bytes);
  } else {
    // A fresh file each time: readers of an older attempt keep theirs.
    ::unlink(path.c_str());
    const FileDescriptor file(::open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600));
    if (!file) return Error::system("call log {} cannot be created: {}", path, reasonOf(errno));
    keepOwnersRights(file.get());
    // A full /dev/shm is an error here and not a bus error later.
    if (const int failed = reserveFile(file.get(), layout.bytes); failed != 0) {
      ::unlink(path.c_str());
      return Error::system("call log {} needs {} bytes: {}", path, layout.bytes, reasonOf(failed));
    }
    auto region = mapFile("call log", path, ipc::read_write);
    if (!region) return region.error();
    log->region_ = std::move(*region);
  }
  log->layOut(capacity);
  CallLogHeader& header = *log->header_;
  header.jobRank = identity.jobRank;
  header.worldSize = identity.worldSize;
  header.pid = getpid();
  header.startWallTime = wallTime();
  header.startTime = SystemClock::instance().now().count();
  header.heartbeat.store(header.startTime, std::memory_order_relaxed);
  copyText(header.job, identity.job);
  copyText(header.host, identity.host);
  std::atomic_thread_fence(std::memory_order_release);
  std::memcpy(header.magic, callLogMagic, sizeof callLogMagic);
  return log;
}

void CallLog::layOut(std::uint32_t capacity) {
  const FileSections layout(capacity);
  auto* bytes = static_cast<char*>(region_.get_address());
  const auto at = [&](SectionKind kind) { return bytes + layout.sections[static_cast<std::size_t>(kind)].offset; };
  header_ = reinterpret_cast<CallLogHeader*>(bytes);
  flights_ = reinterpret_cast<CallLogSlot*>(at(SectionKind::inFlight));
  communicators_ = reinterpret_cast<CommunicatorSlot*>(at(SectionKind::communicators));
  members_ = reinterpret_cast<MemberSlot*>(at(SectionKind::members));
  labels_ = reinterpret_cast<LabelSlot*>(at(SectionKind::labels));
  transfers_ = reinterpret_cast<TransferSlot*>(at(SectionKind::transfers));
  makings_ = {reinterpret_cast<MakingSlot*>(at(SectionKind::makings)), makingRoom};
  slots_ = reinterpret_cast<CallLogSlot*>(at(SectionKind::calls));
  header_->version = callLogVersion;
  header_->headerBytes = callLogHeaderBytes;
  header_->slotBytes = sizeof(CallLogSlot);
  header_->capacity = capacity;
  std::copy(std::begin(layout.sections), std::end(layout.sections), std::begin(header_->sections));
  static std::atomic<std::uint32_t> logs{0};
  stamp_ = static_cast<std::uint64_t>(getpid()) << 32 | ++logs;
}

void CallLog::dropRecords() {
  header_->ended.store(1, std::memory_order_release);
  // What led to a failure is asked for afterwards.
  for (std::uint32_t i = 0; i < communicatorRoom; ++i)
    if (communicators_[i].failure.ticket.load(std::memory_order_relaxed) != 0) return;
  // Shared memory that is removed from the mapping is removed from the file too.
  const std::size_t bytes = labelRoom * sizeof(LabelSlot) + transferRoom * sizeof(TransferSlot) +
                            std::size_t{header_->capacity} * sizeof(CallLogSlot);
  static_cast<void>(madvise(labels_, bytes, MADV_REMOVE));
}

// The first gap between the live communicators' members; memberRoom where there is none.
std::uint32_t CallLog::roomForMembers(std::uint32_t wanted) const {
  std::uint32_t first = 0;
  for (bool moved = true; moved;) {
    moved = false;
    for (std::uint32_t i = 0; i < communicatorRoom; ++i) {
      const CommunicatorSlot& slot = communicators_[i];
      if (slot.state.load(std::memory_order_relaxed) != CommunicatorSlot::live || slot.knownMembers == 0) continue;
      if (slot.firstMember >= first + wanted || slot.firstMember + slot.knownMembers <= first) continue;
      first = slot.firstMember + slot.knownMembers;
      moved = true;
    }
  }
  return wanted <= memberRoom && first <= memberRoom - wanted ? first : memberRoom;
}

int CallLog::add(const CommunicatorEntry& communicator) {
  const std::lock_guard lock(communicatorsMutex_);
  // Those that are gone stay to be read until there is no other room.
  CommunicatorSlot* slot = nullptr;
  for (const auto state : {CommunicatorSlot::unused, CommunicatorSlot::gone})
    for (std::uint32_t i = 0; i < communicatorRoom && !slot; ++i)
      if (communicators_[i].state.load(std::memory_order_relaxed) == state) slot = &communicators_[i];
  if (!slot) return noPlace;
  const auto size = static_cast<std::uint32_t>(communicator.members.size());
  const std::uint32_t first = roomForMembers(size);
  slot->change.fetch_add(1, std::memory_order_acq_rel);
  slot->id = communicator.id;
  slot->rank = communicator.rank;
  slot->size = static_cast<std::int32_t>(size);
  slot->device = communicator.device;
  slot->vendor = communicator.vendor ? 1 : 0;
  slot->collectives.store(0, std::memory_order_relaxed);
  slot->lastEnter.store(0, std::memory_order_relaxed);
  slot->failure.ticket.store(0, std::memory_order_relaxed);
  copyText(slot->name, communicator.name);
  slot->firstMember = first;
  slot->knownMembers = first == memberRoom ? 0 : size;
  for (std::uint32_t i = 0; i < slot->knownMembers; ++i) {
    MemberSlot& member = members_[first + i];
    member.jobRank = communicator.members[i].jobRank;
    member.node = communicator.members[i].node;
    member.sent.store(0, std::memory_order_relaxed);
    member.received.store(0, std::memory_order_relaxed);
  }
  slot->state.store(CommunicatorSlot::live, std::memory_order_release);
  slot->change.fetch_add(1, std::memory_order_acq_rel);
  return static_cast<int>(slot - communicators_);
}

void CallLog::remove(CommunicatorId id, Rank rank) {
  const std::lock_guard lock(communicatorsMutex_);
  for (std::uint32_t i = 0; i < communicatorRoom; ++i) {
    CommunicatorSlot& slot = communicators_[i];
    if (slot.state.load(std::memory_order_relaxed) != CommunicatorSlot::live || slot.id != id || slot.rank != rank)
      continue;
    slot.state.store(CommunicatorSlot::gone, std::memory_order_release);
    return;
  }
}

void CallLog::introduce(CallingThread& thread) const noexcept {
  const auto number = static_cast<std::uint32_t>(::syscall(SYS_gettid));
  // Threads begin apart, so that they do not meet on a cache line.
  thread = {.of = stamp_, .number = number, .cursor = number * 8 % flightRoom};
}

Flight CallLog::enter(CallingThread& thread, CallRecord& call, int place) noexcept {
  if (thread.of != stamp_) [[unlikely]]
    introduce(thread);
  call.thread = thread.number;
  // Where write() will have to.
  prefetchForWriting(&slots_[header_->head.load(std::memory_order_relaxed) & (header_->capacity - 1)]);
  if (place != noPlace) {
    CommunicatorSlot& communicator = communicators_[place];
    communicator.lastEnter.store(call.enter.count(), std::memory_order_relaxed);
    if (!isPointToPoint(call.operation)) {
      communicator.collectives.store(call.sequence + 1, std::memory_order_relaxed);
    } else if (static_cast<std::uint32_t>(call.peer) < communicator.knownMembers) {
      MemberSlot& peer = members_[communicator.firstMember + static_cast<std::uint32_t>(call.peer)];
      (call.operation == Operation::send ? peer.sent : peer.received)
          .store(call.sequence + 1, std::memory_order_relaxed);
    }
  }
  for (std::uint32_t step = 0; step < longestSearch; ++step) {
    const std::uint32_t index = (thread.cursor + step) % flightRoom;
    CallLogSlot& slot = flights_[index];
    std::uint64_t unused = 0;
    if (slot.ticket.load(std::memory_order_relaxed) != 0 ||
        !slot.ticket.compare_exchange_strong(unused, 1, std::memory_order_acquire, std::memory_order_relaxed))
      continue;
    storeWords(slot, call);
    slot.ticket.store(inFlightSince(call.enter), std::memory_order_release);
    // The next call of a group goes on from here; a call on its own comes back to this slot.
    thread.cursor = index;
    return {static_cast<std::int32_t>(index), &thread};
  }
  header_->flightsMissed.fetch_add(1, std::memory_order_relaxed);
  return {noFlight.at, &thread};
}

void CallLog::land(Flight flight) noexcept {
  if (flight != noFlight) flights_[flight.at].ticket.store(0, std::memory_order_release);
}

void CallLog::leave(Flight flight, const CallRecord& call) noexcept {
  write(call);
  land(flight);
}

void CallLog::fail(Flight flight, const CallRecord& call, int place) noexcept {
  land(flight);
  if (place == noPlace) return;
  CallLogSlot& failure = communicators_[place].failure;
  // The first failure breaks a communicator; those that follow say nothing.
  std::uint64_t none = 0;
  if (!failure.ticket.compare_exchange_strong(none, 1, std::memory_order_acquire, std::memory_order_relaxed)) return;
  storeWords(failure, call);
  failure.ticket.store(inFlightSince(call.enter), std::memory_order_release);
}

void CallLog::write(const CallRecord& record) noexcept {
  OverwritingRing(slots_, header_->capacity, header_->head).write([&](CallLogSlot& slot) { storeWords(slot, record); });
}

void CallLog::write(const TransferTiming& transfer) noexcept {
  OverwritingRing(transfers_, transferRoom, transfersWritten_).write([&](TransferSlot& slot) {
    storeWords(slot, wordsOf(transfer));
  });
}

void CallLog::label(const LabelledCall& call) noexcept {
  OverwritingRing(labels_, labelRoom, labelsWritten_).write([&](LabelSlot& slot) { storeWords(slot, wordsOf(call)); });
}

std::uint64_t CallLog::readFrom(std::uint64_t& next, std::vector<CallRecord>& out, std::size_t most) const {
  const std::uint64_t capacity = header_->capacity;
  const OverwritingRing<const CallLogSlot> ring(slots_, capacity, header_->head);
  const std::uint64_t head = ring.end();
  std::uint64_t lost = 0;
  if (head - next > capacity) {
    // The oldest are about to be overwritten by a writer that fast: they would be missed one by one.
    const std::uint64_t kept = std::min<std::uint64_t>(most, capacity / 2);
    lost = head - kept - next;
    next = head - kept;
  }
  const std::uint64_t end = next + std::min<std::uint64_t>(head - next, most);
  for (; next < end; ++next) {
    CallWords words;
    const RingRecord found = readWords(ring, next, words);
    if (found == RingRecord::notYet) break;  // next time
    if (found == RingRecord::whole)
      out.push_back(std::bit_cast<CallRecord>(words));
    else
      ++lost;
  }
  return lost;
}

std::string jobsFolder() {
  return fmt::format("/dev/shm/nccl-falcon-{}", getuid());
}

std::string jobFolder(const std::string& job) {
  std::string name;
  for (const char c : job)
    name += std::isalnum(static_cast<unsigned char>(c)) || c == '-' || c == '_' || c == '.' ? c : '_';
  if (name.empty() || name.front() == '.') name = "_" + name;
  return jobsFolder() + "/" + name;
}

}  // namespace falcon::instrument
