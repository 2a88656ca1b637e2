#include "instrument/call_log_view.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <map>
#include <optional>

#include "base/system_error.h"
#include "instrument/mapped_file.h"

namespace falcon::instrument {
namespace {

namespace ipc = boost::interprocess;

// More than any job has; a damaged file does not make us allocate more.
constexpr std::uint32_t mostMembers = 1 << 16;

template <size_t size>
std::string textOf(const char (&from)[size]) {
  return std::string(from, strnlen(from, size));
}

/// Nothing where the words hold values that no call has.
std::optional<CallRecord> recordOf(const CallWords& words) {
  const auto byte = [&](int number) { return words[1] >> 8 * number & 0xff; };
  if (byte(0) >= operationCount || byte(1) >= dataTypeCount || byte(2) >= reduceKindCount || byte(3) > 1)
    return std::nullopt;
  CallRecord record;
  std::memcpy(static_cast<void*>(&record), words.data(), sizeof words);
  return record;
}

/// The words while the ticket says so, before and after.
std::optional<CallRecord> readSlot(const CallLogSlot& slot, std::uint64_t ticket) {
  if (slot.ticket.load(std::memory_order_acquire) != ticket) return std::nullopt;
  const auto words = loadWords<CallWords>(slot);
  std::atomic_thread_fence(std::memory_order_acquire);
  if (slot.ticket.load(std::memory_order_relaxed) != ticket) return std::nullopt;
  return recordOf(words);
}

/// The tables of a log, within its bytes. What the header says is read once: the file may change meanwhile.
class Tables {
 public:
  static Result<Tables> of(std::span<const std::byte> bytes, const std::string& name) {
    if (bytes.size() < callLogHeaderBytes || std::memcmp(bytes.data(), callLogMagic, sizeof callLogMagic) != 0)
      return Error::invalidArgument("{} is not a call log", name);
    Tables tables(bytes);
    if (const std::uint32_t version = tables.header_->version; version != callLogVersion)
      return Error::invalidArgument("call log {} has version {}; this program reads version {}", name, version,
                                    callLogVersion);
    for (std::size_t kind = 0; kind < sectionCount; ++kind) {
      const CallLogSection section = tables.sections_[kind] = tables.header_->sections[kind];
      const bool fits = section.offset % 8 == 0 && section.offset <= bytes.size() &&
                        std::uint64_t{section.stride} * section.count <= bytes.size() - section.offset;
      if (section.count != 0 && !fits)
        return Error::invalidArgument("call log {} is damaged: table {} has {} entries of {} bytes at {}, the file {}",
                                      name, kind, section.count, section.stride, section.offset, bytes.size());
    }
    const std::uint64_t capacity = tables.count<CallLogSlot>(SectionKind::calls);
    if (capacity == 0 || (capacity & (capacity - 1)) != 0)
      return Error::invalidArgument("call log {} is damaged: a ring of {} calls", name, capacity);
    return tables;
  }

  const CallLogHeader& header() const { return *header_; }
  /// 0 where the entries are not those we know.
  template <class T>
  std::uint32_t count(SectionKind kind) const {
    const CallLogSection& section = sections_[static_cast<std::size_t>(kind)];
    return section.stride == sizeof(T) ? section.count : 0;
  }
  template <class T>
  const T& at(SectionKind kind, std::uint64_t index) const {
    const CallLogSection& section = sections_[static_cast<std::size_t>(kind)];
    return reinterpret_cast<const T*>(bytes_.data() + section.offset)[index];
  }

 private:
  explicit Tables(std::span<const std::byte> bytes)
      : bytes_(bytes), header_(reinterpret_cast<const CallLogHeader*>(bytes.data())) {}

  std::span<const std::byte> bytes_;
  const CallLogHeader* header_;
  CallLogSection sections_[sectionCount] = {};
};

std::vector<MemberView> membersOf(const Tables& tables, std::uint32_t first, std::uint32_t count) {
  std::vector<MemberView> members;
  const std::uint32_t room = tables.count<MemberSlot>(SectionKind::members);
  if (first > room || count > room - first) return members;
  for (std::uint32_t i = 0; i < count; ++i) {
    const auto& slot = tables.at<MemberSlot>(SectionKind::members, first + i);
    members.push_back({slot.jobRank, slot.node, slot.sent.load(std::memory_order_relaxed),
                       slot.received.load(std::memory_order_relaxed)});
  }
  return members;
}

/// Nothing while the slot is being filled in, where it was never used, or makes no sense.
std::optional<CommunicatorView> communicatorAt(const Tables& tables, std::uint32_t index) {
  const auto& slot = tables.at<CommunicatorSlot>(SectionKind::communicators, index);
  const std::uint32_t change = slot.change.load(std::memory_order_acquire);
  const std::uint32_t state = slot.state.load(std::memory_order_acquire);
  if (change % 2 != 0 || (state != CommunicatorSlot::live && state != CommunicatorSlot::gone)) return std::nullopt;
  CommunicatorView view;
  view.id = slot.id;
  view.rank = slot.rank;
  view.size = slot.size;
  view.device = slot.device;
  view.vendor = slot.vendor != 0;
  view.live = state == CommunicatorSlot::live;
  view.collectives = slot.collectives.load(std::memory_order_relaxed);
  view.lastEnter = Nanoseconds(slot.lastEnter.load(std::memory_order_relaxed));
  view.name = textOf(slot.name);
  const std::uint32_t first = slot.firstMember, known = slot.knownMembers;
  if (view.size <= 0 || static_cast<std::uint32_t>(view.size) > mostMembers || view.rank < 0 || view.rank >= view.size)
    return std::nullopt;
  if (const std::uint64_t failed = slot.failure.ticket.load(std::memory_order_acquire); failed > 1)
    view.failure = readSlot(slot.failure, failed);
  if (known == static_cast<std::uint32_t>(view.size)) view.members = membersOf(tables, first, known);
  std::atomic_thread_fence(std::memory_order_acquire);
  if (slot.change.load(std::memory_order_relaxed) != change) return std::nullopt;
  return view;
}

/// What `read` makes of the words in a ring, oldest first.
template <class Slot, class Words, class Read>
auto inOrder(const Tables& tables, SectionKind kind, Read read) {
  std::map<std::uint64_t, Words> byTicket;
  for (std::uint32_t i = 0; i < tables.count<Slot>(kind); ++i) {
    const auto& slot = tables.at<Slot>(kind, i);
    const std::uint64_t ticket = slot.ticket.load(std::memory_order_acquire);
    const auto words = loadWords<Words>(slot);
    std::atomic_thread_fence(std::memory_order_acquire);
    if (OverwritingRing<Slot>::isOfAWholeRecord(ticket) && slot.ticket.load(std::memory_order_relaxed) == ticket)
      byTicket[ticket] = words;
  }
  std::vector<decltype(read(Words()))> all;
  for (const auto& [ticket, words] : byTicket) all.push_back(read(words));
  return all;
}

/// Nothing where the slot is free, is being written, or makes no sense.
std::optional<MakingView> makingAt(const Tables& tables, std::uint32_t index) {
  const auto& slot = tables.at<MakingSlot>(SectionKind::makings, index);
  const std::uint64_t ticket = slot.ticket.load(std::memory_order_acquire);
  MakingView view;
  view.kind = static_cast<MakingKind>(slot.kind);
  view.key = slot.key;
  view.rank = slot.rank;
  view.size = slot.size;
  view.enter = Nanoseconds(static_cast<std::int64_t>(ticket));
  view.met = slot.met.load(std::memory_order_relaxed) != 0;
  view.name = textOf(slot.name);
  for (std::uint32_t rank = 0; rank < MakingSlot::mostArrived; ++rank)
    if ((slot.arrived[rank / 64].load(std::memory_order_relaxed) >> rank % 64 & 1) != 0)
      view.arrived.push_back(static_cast<Rank>(rank));
  std::atomic_thread_fence(std::memory_order_acquire);
  const bool sound = static_cast<std::uint32_t>(view.kind) < makingKindCount && view.rank >= 0 &&
                     view.rank < view.size && (view.arrived.empty() || view.arrived.back() < view.size);
  if (ticket < 2 || slot.ticket.load(std::memory_order_relaxed) != ticket || !sound) return std::nullopt;
  return view;
}

void readTables(const Tables& tables, CallLogView& view) {
  for (std::uint32_t i = 0; i < tables.count<MakingSlot>(SectionKind::makings); ++i)
    if (auto making = makingAt(tables, i)) view.makings.push_back(std::move(*making));
  view.transfers = inOrder<TransferSlot, TransferWords>(tables, SectionKind::transfers, transferOf);
  view.labelled = inOrder<LabelSlot, LabelWords>(tables, SectionKind::labels, labelledCallOf);
  std::erase_if(view.labelled, [](const LabelledCall& call) {
    const CallLabels& labels = call.labels;
    return static_cast<int>(call.operation) >= operationCount || labels.iteration < CallLabels::none ||
           labels.phase < CallLabels::none || labels.group < CallLabels::none;
  });
  for (std::uint32_t i = 0; i < tables.count<CommunicatorSlot>(SectionKind::communicators); ++i)
    if (auto communicator = communicatorAt(tables, i)) view.communicators.push_back(std::move(*communicator));
  for (std::uint32_t i = 0; i < tables.count<CallLogSlot>(SectionKind::inFlight); ++i) {
    const auto& slot = tables.at<CallLogSlot>(SectionKind::inFlight, i);
    const std::uint64_t ticket = slot.ticket.load(std::memory_order_acquire);
    if (ticket < 2) continue;
    if (const auto record = readSlot(slot, ticket)) view.inFlight.push_back(*record);
  }
}

Result<ipc::mapped_region> mapLog(const std::string& path, ipc::mode_t mode) {
  // Opening a fifo or a device might wait for ever.
  struct stat facts {};
  if (::lstat(path.c_str(), &facts) != 0) return Error::system("call log {} cannot be read: {}", path, reasonOf(errno));
  if (!S_ISREG(facts.st_mode)) return Error::invalidArgument("{} is not a file", path);
  return mapFile("call log", path, mode);
}

std::span<const std::byte> bytesOf(const ipc::mapped_region& region) {
  return {static_cast<const std::byte*>(region.get_address()), region.get_size()};
}

}  // namespace

Result<CallLogView> viewOf(std::span<const std::byte> bytes, const std::string& name, std::size_t wanted,
                           std::uint64_t from) {
  const auto tables = Tables::of(bytes, name);
  if (!tables) return tables.error();
  const CallLogHeader& header = tables->header();
  CallLogView view;
  view.identity = {textOf(header.job), textOf(header.host), header.jobRank, header.worldSize};
  view.pid = header.pid;
  view.startWallTime = header.startWallTime;
  view.startTime = Nanoseconds(header.startTime);
  view.state = static_cast<JobState>(header.state.load(std::memory_order_relaxed));
  view.controller = header.controller.load(std::memory_order_relaxed) != 0;
  view.held = header.held.load(std::memory_order_relaxed) != 0;
  view.ended = header.ended.load(std::memory_order_relaxed) != 0;
  view.failslowActive = header.failslowActive.load(std::memory_order_relaxed) != 0;
  view.heartbeat = Nanoseconds(header.heartbeat.load(std::memory_order_relaxed));
  view.iterations = header.iterations.load(std::memory_order_relaxed);
  view.iterationSeconds = static_cast<double>(header.iterationNanoseconds.load(std::memory_order_relaxed)) * 1e-9;
  view.flightsMissed = header.flightsMissed.load(std::memory_order_relaxed);
  readTables(*tables, view);
  const std::uint64_t capacity = tables->count<CallLogSlot>(SectionKind::calls);
  const OverwritingRing ring(&tables->at<CallLogSlot>(SectionKind::calls, 0), capacity, header.head);
  view.calls = ring.end();
  const std::uint64_t kept = std::min<std::uint64_t>({view.calls, capacity, wanted});
  for (std::uint64_t index = std::max(from, view.calls - kept); index < view.calls; ++index) {
    CallWords words;
    if (readWords(ring, index, words) != RingRecord::whole) continue;
    if (const auto record = recordOf(words)) view.latest.push_back(*record);
  }
  return view;
}

Result<CallLogView> readCallLog(const std::string& path, std::size_t wanted, std::uint64_t from) {
  const auto region = mapLog(path, ipc::read_only);
  if (!region) return region.error();
  return viewOf(bytesOf(*region), path, wanted, from);
}

bool ownerIsAlive(const CallLogView& log) {
  return log.pid > 0 && (kill(static_cast<pid_t>(log.pid), 0) == 0 || errno == EPERM);
}

Status sendCommand(const std::string& path, JobCommand command, std::uint32_t argument) {
  auto region = mapLog(path, ipc::read_write);
  if (!region) return region.error();
  if (const auto checked = Tables::of(bytesOf(*region), path); !checked) return checked.error();
  static_cast<CallLogHeader*>(region->get_address())
      ->command.store(static_cast<std::uint32_t>(command) | argument << jobCommandBits, std::memory_order_release);
  return {};
}

}  // namespace falcon::instrument
