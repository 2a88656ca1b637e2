#include "instrument/range_log.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <boost/interprocess/anonymous_shared_memory.hpp>
#include <cerrno>
#include <cstring>
#include <utility>

#include "base/format.h"
#include "base/overwriting_ring.h"
#include "base/own_folder.h"
#include "base/owned.h"
#include "base/reserve_file.h"
#include "base/system_error.h"
#include "instrument/mapped_file.h"

namespace falcon::instrument {
namespace {

namespace ipc = boost::interprocess;
constexpr std::uint32_t headerBytes = 4096;
static_assert(sizeof(RangeLogHeader) <= headerBytes);
constexpr std::uint32_t lastName = RangeLogHeader::mostNames - 1;
constexpr std::string_view otherNames = "other";

using RingToRead = OverwritingRing<const RangeSlot>;

RingRecord readRecord(const RingToRead& ring, std::uint64_t index, RangeRecord& record) {
  return ring.read(index, [&](const RangeSlot& slot) {
    const std::uint64_t what = slot.what.load(std::memory_order_relaxed);
    record = {static_cast<std::uint32_t>(what), static_cast<std::uint32_t>(what >> 32),
              Nanoseconds(slot.begin.load(std::memory_order_relaxed)),
              Nanoseconds(slot.end.load(std::memory_order_relaxed))};
  });
}

constexpr std::uint64_t freePlace = 0, placeBeingWritten = 1, firstName = 2;

std::vector<OpenRange> openIn(const RangeLogHeader& header, const std::vector<RangeLogView::Name>& names) {
  std::vector<OpenRange> open;
  for (const RangeLogHeader::Open& place : header.open) {
    const std::uint64_t what = place.what.load(std::memory_order_acquire);
    const std::uint64_t name = (what & 0xffffffff) - firstName;
    OpenRange range{"", static_cast<std::uint32_t>(what >> 32) - 1, place.thread.load(std::memory_order_relaxed),
                    Nanoseconds(place.begin.load(std::memory_order_relaxed))};
    std::atomic_thread_fence(std::memory_order_acquire);
    if (what >> 32 == 0 || name >= names.size() || place.what.load(std::memory_order_relaxed) != what) continue;
    range.name = names[name].text;
    open.push_back(std::move(range));
  }
  std::sort(open.begin(), open.end(), [](const OpenRange& one, const OpenRange& other) {
    return std::pair(one.thread, one.depth) < std::pair(other.thread, other.depth);
  });
  return open;
}

}  // namespace

Result<std::unique_ptr<RangeLog>> RangeLog::create(const std::string& path, Rank jobRank) {
  constexpr std::size_t bytes = headerBytes + std::size_t{slots} * sizeof(RangeSlot);
  std::unique_ptr<RangeLog> log(new RangeLog);
  if (path.empty()) {
    log->region_ = ipc::anonymous_shared_memory(bytes);
  } else {
    ::unlink(path.c_str());
    const FileDescriptor file(::open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600));
    if (!file) return Error::system("range log {} cannot be created: {}", path, reasonOf(errno));
    keepOwnersRights(file.get());
    if (const int failed = reserveFile(file.get(), bytes); failed != 0) {
      ::unlink(path.c_str());
      return Error::system("range log {} needs {} bytes: {}", path, bytes, reasonOf(failed));
    }
    auto region = mapFile("range log", path, ipc::read_write);
    if (!region) return region.error();
    log->region_ = std::move(*region);
  }
  log->header_ = static_cast<RangeLogHeader*>(log->region_.get_address());
  log->slots_ = reinterpret_cast<RangeSlot*>(static_cast<char*>(log->region_.get_address()) + headerBytes);
  RangeLogHeader& header = *log->header_;
  header.version = rangeLogVersion;
  header.headerBytes = headerBytes;
  header.slotBytes = sizeof(RangeSlot);
  header.capacity = slots;
  header.jobRank = jobRank;
  header.pid = getpid();
  std::atomic_thread_fence(std::memory_order_release);
  std::memcpy(header.magic, rangeLogMagic, sizeof rangeLogMagic);
  return log;
}

std::uint32_t RangeLog::nameOf(std::string_view name, std::uint32_t most) noexcept {
  name = name.substr(0, RangeLogHeader::nameBytes - 1);
  const auto find = [&]() -> std::int64_t {
    const std::uint32_t known = header_->names.load(std::memory_order_acquire);
    for (std::uint32_t i = 0; i < known; ++i)
      if (name == header_->name[i].text) return i;
    return known > lastName ? std::int64_t{lastName} : -1;
  };
  if (const auto found = find(); found >= 0) return static_cast<std::uint32_t>(found);
  if (most <= lastName && header_->names.load(std::memory_order_acquire) >= most) return nameOf(otherNames);
  while (naming_.test_and_set(std::memory_order_acquire)) {
  }
  auto found = find();
  if (found < 0) {
    const std::uint32_t next = header_->names.load(std::memory_order_relaxed);
    if (next == lastName) name = otherNames;
    RangeLogHeader::Name& entry = header_->name[next];
    std::memcpy(entry.text, name.data(), name.size());
    entry.ready.store(1, std::memory_order_release);
    header_->names.store(next + 1, std::memory_order_release);
    found = next;
  }
  naming_.clear(std::memory_order_release);
  return static_cast<std::uint32_t>(found);
}

void RangeLog::write(const RangeRecord& record) noexcept {
  OverwritingRing(slots_, slots, header_->head).write([&](RangeSlot& slot) {
    slot.what.store(record.name | std::uint64_t{record.depth} << 32, std::memory_order_relaxed);
    slot.begin.store(record.begin.count(), std::memory_order_relaxed);
    slot.end.store(record.end.count(), std::memory_order_relaxed);
  });
}

int RangeLog::showOpen(const RangeRecord& range, std::uint32_t thread) noexcept {
  for (std::uint32_t i = 0; i < RangeLogHeader::mostOpen; ++i) {
    const std::uint32_t place = (thread + range.depth + i) % RangeLogHeader::mostOpen;
    RangeLogHeader::Open& open = header_->open[place];
    std::uint64_t seen = freePlace;
    if (open.what.load(std::memory_order_relaxed) != freePlace ||
        !open.what.compare_exchange_strong(seen, placeBeingWritten, std::memory_order_acquire))
      continue;
    open.begin.store(range.begin.count(), std::memory_order_relaxed);
    open.thread.store(thread, std::memory_order_relaxed);
    open.what.store((range.name + firstName) | (std::uint64_t{range.depth} + 1) << 32, std::memory_order_release);
    return static_cast<int>(place);
  }
  return noPlace;
}

void RangeLog::hideOpen(int place) noexcept {
  if (place != noPlace) header_->open[place].what.store(freePlace, std::memory_order_release);
}

void RangeLog::readFrom(std::uint64_t& next, std::vector<RangeRecord>& out) const {
  const RingToRead ring(slots_, slots, header_->head);
  const std::uint64_t head = ring.end();
  if (head - next > slots / 2) next = head - slots / 2;
  for (; next < head; ++next) {
    RangeRecord record;
    const RingRecord found = readRecord(ring, next, record);
    if (found == RingRecord::notYet) return;  // next time
    if (found == RingRecord::whole) out.push_back(record);
  }
}

std::string RangeLog::text(std::uint32_t name) const {
  return header_->name[std::min(name, lastName)].text;
}

void RangeLog::showLast(std::uint32_t name, Nanoseconds time, std::uint32_t times) noexcept {
  RangeLogHeader::Name& entry = header_->name[std::min(name, lastName)];
  entry.nanoseconds.store(time.count(), std::memory_order_relaxed);
  entry.times.store(times, std::memory_order_relaxed);
}

void RangeLog::dropRecords() {
  static_cast<void>(madvise(slots_, std::size_t{slots} * sizeof(RangeSlot), MADV_REMOVE));
}

Result<RangeLogView> readRangeLog(const std::string& path, std::size_t wanted) {
  auto region = mapFile("range log", path, ipc::read_only);
  if (!region) return region.error();
  const auto& header = *static_cast<const RangeLogHeader*>(region->get_address());
  if (region->get_size() < headerBytes || std::memcmp(header.magic, rangeLogMagic, sizeof rangeLogMagic) != 0)
    return Error::invalidArgument("{} is not a range log", path);
  if (header.version != rangeLogVersion)
    return Error::invalidArgument("range log {} has version {}; this program reads version {}", path, header.version,
                                  rangeLogVersion);
  const std::uint64_t capacity = header.capacity;
  if (header.headerBytes != headerBytes || header.slotBytes != sizeof(RangeSlot) || capacity == 0 ||
      (capacity & (capacity - 1)) != 0 || region->get_size() < headerBytes + capacity * sizeof(RangeSlot))
    return Error::invalidArgument("range log {} is damaged: {} slots of {} bytes do not fit its {} bytes", path,
                                  capacity, header.slotBytes, region->get_size());
  RangeLogView view;
  view.jobRank = header.jobRank;
  view.pid = header.pid;
  const std::uint32_t names = std::min(header.names.load(std::memory_order_acquire), RangeLogHeader::mostNames);
  for (std::uint32_t i = 0; i < names; ++i) {
    const RangeLogHeader::Name& name = header.name[i];
    view.names.push_back({std::string(name.text, strnlen(name.text, sizeof name.text)),
                          Nanoseconds(std::max<std::int64_t>(0, name.nanoseconds.load(std::memory_order_relaxed))),
                          name.times.load(std::memory_order_relaxed)});
  }
  view.open = openIn(header, view.names);
  const auto* slots = reinterpret_cast<const RangeSlot*>(static_cast<const char*>(region->get_address()) + headerBytes);
  const RingToRead ring(slots, capacity, header.head);
  view.ranges = ring.end();
  const std::uint64_t kept = std::min<std::uint64_t>({view.ranges, capacity, wanted});
  for (std::uint64_t index = view.ranges - kept; index < view.ranges; ++index) {
    RangeRecord record;
    if (readRecord(ring, index, record) == RingRecord::whole && record.name < names) view.latest.push_back(record);
  }
  return view;
}

}  // namespace falcon::instrument
