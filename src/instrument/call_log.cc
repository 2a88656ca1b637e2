#include "instrument/call_log.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <boost/interprocess/anonymous_shared_memory.hpp>
#include <cerrno>
#include <cstring>

#include "base/log.h"
#include "base/owned.h"
#include "base/reserve_file.h"
#include "base/system_error.h"

namespace falcon::instrument {
namespace {

namespace ipc = boost::interprocess;
constexpr std::uint32_t headerBytes = 4096;
static_assert(sizeof(CallLogHeader) <= headerBytes);

template <size_t size>
void copyText(char (&to)[size], const std::string& from) {
  const size_t length = std::min(from.size(), size - 1);
  std::memcpy(to, from.data(), length);
  to[length] = 0;
}

template <size_t size>
std::string textOf(const char (&from)[size]) {
  return std::string(from, strnlen(from, size));
}

// True and a copy when the slot holds exactly record `index`.
bool readSlot(const CallLogSlot& slot, std::uint64_t index, CallRecord& record) {
  if (slot.ticket.load(std::memory_order_acquire) != index + 1) return false;
  std::uint64_t words[6];
  for (int i = 0; i < 6; ++i) words[i] = slot.words[i].load(std::memory_order_relaxed);
  std::atomic_thread_fence(std::memory_order_acquire);
  if (slot.ticket.load(std::memory_order_relaxed) != index + 1) return false;
  std::memcpy(static_cast<void*>(&record), words, sizeof words);
  return true;
}

Result<ipc::mapped_region> mapFile(const std::string& path, ipc::mode_t mode) {
  try {
    const ipc::file_mapping file(path.c_str(), mode);
    return ipc::mapped_region(file, mode);
  } catch (const ipc::interprocess_exception& exception) {
    return Error::system("call log {} cannot be mapped: {}", path, exception.what());
  }
}

Result<const CallLogHeader*> checkedHeader(const ipc::mapped_region& region, const std::string& path) {
  const auto* header = static_cast<const CallLogHeader*>(region.get_address());
  if (region.get_size() < headerBytes || std::memcmp(header->magic, callLogMagic, sizeof callLogMagic) != 0)
    return Error::invalidArgument("{} is not a call log", path);
  if (header->version != callLogVersion)
    return Error::invalidArgument("call log {} has version {}; this program reads version {}", path, header->version,
                                  callLogVersion);
  const std::uint64_t capacity = header->capacity;
  if (header->headerBytes != headerBytes || header->slotBytes != sizeof(CallLogSlot) || capacity == 0 ||
      (capacity & (capacity - 1)) != 0 || region.get_size() < headerBytes + capacity * sizeof(CallLogSlot))
    return Error::invalidArgument("call log {} is damaged: {} slots of {} bytes do not fit its {} bytes", path,
                                  capacity, header->slotBytes, region.get_size());
  return header;
}

}  // namespace

const char* nameOf(JobState state) {
  constexpr const char* names[] = {"starting", "tracking", "profiling", "validating", "mitigating", "off"};
  return static_cast<size_t>(state) < std::size(names) ? names[static_cast<size_t>(state)] : "unknown";
}

Result<std::unique_ptr<CallLog>> CallLog::create(const std::string& path, const CallLogIdentity& identity,
                                                 std::uint32_t capacity) {
  const size_t bytes = headerBytes + size_t{capacity} * sizeof(CallLogSlot);
  std::unique_ptr<CallLog> log(new CallLog);
  if (path.empty()) {
    log->region_ = ipc::anonymous_shared_memory(bytes);
  } else {
    // A fresh file each time: readers of an older attempt keep theirs.
    ::unlink(path.c_str());
    const FileDescriptor file(::open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600));
    if (!file) return Error::system("call log {} cannot be created: {}", path, reasonOf(errno));
    // A full /dev/shm is an error here and not a bus error later.
    if (const int failed = reserveFile(file.get(), bytes); failed != 0) {
      ::unlink(path.c_str());
      return Error::system("call log {} needs {} bytes: {}", path, bytes, reasonOf(failed));
    }
    auto region = mapFile(path, ipc::read_write);
    if (!region) return region.error();
    log->region_ = std::move(*region);
  }
  log->header_ = static_cast<CallLogHeader*>(log->region_.get_address());
  log->slots_ = reinterpret_cast<CallLogSlot*>(static_cast<char*>(log->region_.get_address()) + headerBytes);
  CallLogHeader& header = *log->header_;
  header.version = callLogVersion;
  header.headerBytes = headerBytes;
  header.slotBytes = sizeof(CallLogSlot);
  header.capacity = capacity;
  header.jobRank = identity.jobRank;
  header.worldSize = identity.worldSize;
  header.pid = getpid();
  header.startWallTime = std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
  header.startTime = SystemClock::instance().now().count();
  copyText(header.job, identity.job);
  copyText(header.host, identity.host);
  std::atomic_thread_fence(std::memory_order_release);
  std::memcpy(header.magic, callLogMagic, sizeof callLogMagic);
  return log;
}

void CallLog::dropRecords() {
  // Shared memory that is removed from the mapping is removed from the file too.
  static_cast<void>(madvise(slots_, std::size_t{header_->capacity} * sizeof(CallLogSlot), MADV_REMOVE));
}

void CallLog::write(const CallRecord& record) noexcept {
  const std::uint64_t index = header_->head.fetch_add(1, std::memory_order_relaxed);
  CallLogSlot& slot = slots_[index & (header_->capacity - 1)];
  std::uint64_t words[6];
  std::memcpy(words, static_cast<const void*>(&record), sizeof words);
  slot.ticket.store(0, std::memory_order_relaxed);
  std::atomic_thread_fence(std::memory_order_release);
  for (int i = 0; i < 6; ++i) slot.words[i].store(words[i], std::memory_order_relaxed);
  slot.ticket.store(index + 1, std::memory_order_release);
}

std::uint64_t CallLog::readFrom(std::uint64_t& next, std::vector<CallRecord>& out, std::size_t most) const {
  const std::uint64_t head = header_->head.load(std::memory_order_acquire);
  const std::uint64_t capacity = header_->capacity;
  std::uint64_t lost = 0;
  if (head - next > capacity) {
    // The oldest are about to be overwritten by a writer that fast: they would be missed one by one.
    const std::uint64_t kept = std::min<std::uint64_t>(most, capacity / 2);
    lost = head - kept - next;
    next = head - kept;
  }
  const std::uint64_t end = next + std::min<std::uint64_t>(head - next, most);
  for (; next < end; ++next) {
    CallRecord record;
    const CallLogSlot& slot = slots_[next & (capacity - 1)];
    if (readSlot(slot, next, record)) {
      out.push_back(record);
    } else if (slot.ticket.load(std::memory_order_acquire) > next + 1) {
      ++lost;  // overwritten while we were reading
    } else {
      break;  // its writer is in the middle of it: next time
    }
  }
  return lost;
}

Result<CallLogView> readCallLog(const std::string& path, std::size_t wanted) {
  auto region = mapFile(path, ipc::read_only);
  if (!region) return region.error();
  const auto checked = checkedHeader(*region, path);
  if (!checked) return checked.error();
  const CallLogHeader& header = **checked;
  CallLogView view;
  view.identity = {textOf(header.job), textOf(header.host), header.jobRank, header.worldSize};
  view.pid = header.pid;
  view.startWallTime = header.startWallTime;
  view.state = static_cast<JobState>(header.state.load(std::memory_order_relaxed));
  view.controller = header.controller.load(std::memory_order_relaxed) != 0;
  view.held = header.held.load(std::memory_order_relaxed) != 0;
  view.failslowActive = header.failslowActive.load(std::memory_order_relaxed) != 0;
  view.iterations = header.iterations.load(std::memory_order_relaxed);
  view.iterationSeconds = static_cast<double>(header.iterationNanoseconds.load(std::memory_order_relaxed)) * 1e-9;
  view.calls = header.head.load(std::memory_order_acquire);
  const auto* slots =
      reinterpret_cast<const CallLogSlot*>(static_cast<const char*>(region->get_address()) + headerBytes);
  const std::uint64_t kept = std::min<std::uint64_t>({view.calls, header.capacity, wanted});
  for (std::uint64_t index = view.calls - kept; index < view.calls; ++index) {
    CallRecord record;
    if (readSlot(slots[index & (header.capacity - 1)], index, record)) view.latest.push_back(record);
  }
  return view;
}

bool ownerIsAlive(const CallLogView& log) {
  return log.pid > 0 && (kill(static_cast<pid_t>(log.pid), 0) == 0 || errno == EPERM);
}

Status sendCommand(const std::string& path, JobCommand command) {
  auto region = mapFile(path, ipc::read_write);
  if (!region) return region.error();
  if (const auto checked = checkedHeader(*region, path); !checked) return checked.error();
  static_cast<CallLogHeader*>(region->get_address())
      ->command.store(static_cast<std::uint32_t>(command), std::memory_order_release);
  return {};
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
