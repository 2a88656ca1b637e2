#include "instrument/recording.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "base/fixed_text.h"

namespace falcon::instrument {
namespace {

constexpr char recordingMagic[8] = {'F', 'A', 'L', 'C', 'O', 'N', 'R', 'C'};
constexpr std::uint32_t recordingVersion = 1;

struct RecordingHeader {
  char magic[8];
  std::uint32_t version;
  std::uint32_t ranks;
};

struct RecordedRank {
  std::uint32_t process;
  std::uint32_t unused;
  std::int64_t now;
  std::uint64_t bytes;
};

/// Bytes that grow; what is placed stays aligned to 8.
class Image {
 public:
  template <class T>
  void place(CallLogHeader& header, SectionKind kind, std::size_t count) {
    header.sections[static_cast<std::size_t>(kind)] = {bytes_, sizeof(T), static_cast<std::uint32_t>(count)};
    bytes_ += (sizeof(T) * count + 7) / 8 * 8;
  }
  std::uint64_t bytes() const { return bytes_; }

 private:
  std::uint64_t bytes_ = callLogHeaderBytes;
};

template <class Slot, class Words>
void store(Slot& slot, std::uint64_t ticket, const Words& words) {
  slot.ticket.store(ticket, std::memory_order_relaxed);
  storeWords(slot, words);
}

void store(CallLogSlot& slot, std::uint64_t ticket, const CallRecord& record) {
  CallWords words;
  std::memcpy(words.data(), static_cast<const void*>(&record), sizeof words);
  store(slot, ticket, words);
}

std::uint64_t sinceOf(const CallRecord& call) {
  return std::max<std::uint64_t>(2, static_cast<std::uint64_t>(call.enter.count()));
}

void describe(CallLogHeader& header, const CallLogView& view) {
  std::memcpy(header.magic, callLogMagic, sizeof callLogMagic);
  header.version = callLogVersion;
  header.headerBytes = callLogHeaderBytes;
  header.slotBytes = sizeof(CallLogSlot);
  header.jobRank = view.identity.jobRank;
  header.worldSize = view.identity.worldSize;
  header.pid = view.pid;
  header.startWallTime = view.startWallTime;
  header.startTime = view.startTime.count();
  copyText(header.job, view.identity.job);
  copyText(header.host, view.identity.host);
  header.head = view.calls;
  header.state = static_cast<std::uint32_t>(view.state);
  header.controller = view.controller;
  header.held = view.held;
  header.iterations = view.iterations;
  header.iterationNanoseconds = static_cast<std::int64_t>(view.iterationSeconds * 1e9);
  header.failslowActive = view.failslowActive;
  header.ended = view.ended;
  header.heartbeat = view.heartbeat.count();
  header.flightsMissed = view.flightsMissed;
}

void describe(CommunicatorSlot& slot, const CommunicatorView& view, std::uint32_t firstMember) {
  slot.state = view.live ? CommunicatorSlot::live : CommunicatorSlot::gone;
  slot.id = view.id;
  slot.rank = view.rank;
  slot.size = view.size;
  slot.firstMember = firstMember;
  slot.knownMembers = static_cast<std::uint32_t>(view.members.size());
  slot.device = view.device;
  slot.vendor = view.vendor;
  slot.collectives = view.collectives;
  slot.lastEnter = view.lastEnter.count();
  copyText(slot.name, view.name);
  if (view.failure) store(slot.failure, sinceOf(*view.failure), *view.failure);
}

void describe(MakingSlot& slot, const MakingView& view) {
  slot.ticket = static_cast<std::uint64_t>(view.enter.count());
  slot.key = view.key;
  slot.rank = view.rank;
  slot.size = view.size;
  slot.kind = static_cast<std::uint32_t>(view.kind);
  slot.met = view.met;
  for (const Rank rank : view.arrived) slot.arrived[rank / 64] |= std::uint64_t{1} << rank % 64;
  copyText(slot.name, view.name);
}

}  // namespace

std::string imageOf(const CallLogView& view) {
  std::size_t members = 0;
  for (const CommunicatorView& communicator : view.communicators) members += communicator.members.size();
  const std::uint64_t slots = std::bit_ceil(std::max<std::uint64_t>(1, view.latest.size()));
  CallLogHeader shape{};
  Image image;
  image.place<CallLogSlot>(shape, SectionKind::inFlight, view.inFlight.size());
  image.place<CommunicatorSlot>(shape, SectionKind::communicators, view.communicators.size());
  image.place<MemberSlot>(shape, SectionKind::members, members);
  image.place<MakingSlot>(shape, SectionKind::makings, view.makings.size());
  image.place<LabelSlot>(shape, SectionKind::labels, view.labelled.size());
  image.place<TransferSlot>(shape, SectionKind::transfers, view.transfers.size());
  image.place<CallLogSlot>(shape, SectionKind::calls, slots);
  // Of words, so that all is aligned; zero is what every field begins with.
  std::vector<std::uint64_t> words(image.bytes() / sizeof(std::uint64_t));
  auto* bytes = reinterpret_cast<char*>(words.data());
  auto& header = *reinterpret_cast<CallLogHeader*>(bytes);
  describe(header, view);
  header.capacity = static_cast<std::uint32_t>(slots);
  std::copy(std::begin(shape.sections), std::end(shape.sections), std::begin(header.sections));
  const auto at = [&](SectionKind kind) { return bytes + header.sections[static_cast<std::size_t>(kind)].offset; };
  auto* flights = reinterpret_cast<CallLogSlot*>(at(SectionKind::inFlight));
  for (const CallRecord& call : view.inFlight) store(*flights++, sinceOf(call), call);
  auto* communicators = reinterpret_cast<CommunicatorSlot*>(at(SectionKind::communicators));
  auto* member = reinterpret_cast<MemberSlot*>(at(SectionKind::members));
  std::uint32_t firstMember = 0;
  for (const CommunicatorView& communicator : view.communicators) {
    describe(*communicators++, communicator, firstMember);
    firstMember += static_cast<std::uint32_t>(communicator.members.size());
    for (const MemberView& each : communicator.members) {
      member->jobRank = each.jobRank;
      member->node = each.node;
      member->sent = each.sent;
      (member++)->received = each.received;
    }
  }
  auto* making = reinterpret_cast<MakingSlot*>(at(SectionKind::makings));
  for (const MakingView& each : view.makings) describe(*making++, each);
  auto* transfer = reinterpret_cast<TransferSlot*>(at(SectionKind::transfers));
  std::uint64_t ticket = 0;
  for (const TransferTiming& each : view.transfers) store(*transfer++, ++ticket, wordsOf(each));
  auto* label = reinterpret_cast<LabelSlot*>(at(SectionKind::labels));
  ticket = 0;
  for (const LabelledCall& each : view.labelled) store(*label++, ++ticket, wordsOf(each));
  auto* ring = reinterpret_cast<CallLogSlot*>(at(SectionKind::calls));
  // A hostile log may claim fewer calls than it holds.
  header.head = std::max<std::uint64_t>(view.calls, view.latest.size());
  std::uint64_t index = header.head - view.latest.size();
  for (const CallRecord& call : view.latest) {
    store(ring[index & (slots - 1)], index + 1, call);
    ++index;
  }
  return std::string(bytes, image.bytes());
}

std::string encodeRecording(std::span<const RankSnapshot> ranks) {
  std::string recording;
  const auto append = [&](const auto& value) { recording.append(reinterpret_cast<const char*>(&value), sizeof value); };
  RecordingHeader header{{}, recordingVersion, static_cast<std::uint32_t>(ranks.size())};
  std::memcpy(header.magic, recordingMagic, sizeof recordingMagic);
  append(header);
  for (const RankSnapshot& rank : ranks) {
    const std::string image = imageOf(rank.log);
    append(RecordedRank{static_cast<std::uint32_t>(rank.process), 0, rank.now.count(), image.size()});
    recording += image;  // a multiple of 8
  }
  return recording;
}

Result<Recording> decodeRecording(std::span<const std::byte> bytes, const std::string& name) {
  RecordingHeader header;
  if (bytes.size() < sizeof header || std::memcmp(bytes.data(), recordingMagic, sizeof recordingMagic) != 0)
    return Error::invalidArgument("{} is not a recording", name);
  std::memcpy(&header, bytes.data(), sizeof header);
  if (header.version != recordingVersion)
    return Error::invalidArgument("recording {} has version {}; this program reads version {}", name, header.version,
                                  recordingVersion);
  std::span<const std::byte> rest = bytes.subspan(sizeof header);
  Recording recording;
  std::size_t damaged = 0;
  for (std::uint32_t i = 0; i < header.ranks; ++i) {
    RecordedRank recorded;
    if (rest.size() < sizeof recorded) break;
    std::memcpy(&recorded, rest.data(), sizeof recorded);
    const auto log = rest.subspan(sizeof recorded);
    // Where the next rank begins is not known then.
    if (recorded.bytes > log.size() || recorded.bytes % 8 != 0) break;
    auto view = recorded.process < processStateCount
                    ? viewOf(log.first(recorded.bytes), name, SIZE_MAX)
                    : Error::invalidArgument("recording {} has a process state {}", name, recorded.process);
    if (view)
      recording.ranks.push_back(
          {std::move(*view), static_cast<ProcessState>(recorded.process), Nanoseconds(recorded.now)});
    else
      damaged += sizeof recorded + recorded.bytes;
    rest = log.subspan(recorded.bytes);
  }
  if (recording.ranks.size() < header.ranks)
    recording.lost =
        fmt::format("recording {} is cut or damaged: {} of its {} ranks are whole, {} of its {} bytes are of no use",
                    name, recording.ranks.size(), header.ranks, damaged + rest.size(), bytes.size());
  if (recording.ranks.empty() && header.ranks > 0) return Error::invalidArgument("{}", recording.lost);
  return recording;
}

}  // namespace falcon::instrument
