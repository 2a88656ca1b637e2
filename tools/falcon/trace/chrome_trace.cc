#include "trace/chrome_trace.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "diagnose/job_members.h"

namespace falcon::trace {

using instrument::CommunicatorView;
using instrument::RankSnapshot;
using nlohmann::json;

namespace {

/// A call on the common timeline.
struct Slice {
  CallRecord call;
  int process, thread;
  std::string host;
  std::int64_t start, stop;  ///< nanoseconds since 1970
  bool inFlight;
  CallLabels labels;
};

/// One transfer of one channel on the common timeline.
struct ChannelSlice {
  TransferTiming transfer;
  int process, thread;
  std::string peer;
  std::int64_t start, stop;
};

double microseconds(std::int64_t nanoseconds) {
  return static_cast<double>(nanoseconds) / 1000;
}

class Writer {
 public:
  explicit Writer(std::span<const RankSnapshot> ranks) : communicatorNames_(diagnose::namesIn(ranks)) {
    std::set<int> taken;
    for (const RankSnapshot& rank : ranks) {
      int process = std::max(0, rank.log.identity.jobRank);
      while (!taken.insert(process).second) ++process;  // ranks that do not know theirs
      addRank(rank, process);
    }
    std::sort(slices_.begin(), slices_.end(), [](const Slice& a, const Slice& b) {
      return std::tuple(a.start, -a.stop) < std::tuple(b.start, -b.stop);
    });
    for (const Slice& slice : slices_) first_ = std::min(first_, slice.start);
  }

  json events() {
    findLastArrivals();
    for (const Slice& slice : slices_) addSlice(slice);
    addTransfers();
    addFlows();
    std::stable_sort(events_.begin(), events_.end(), [](const json& a, const json& b) {
      const auto at = [](const json& event) { return event.at("ts").get<double>(); };
      const auto length = [](const json& event) { return event.value("dur", 0.0); };
      // What encloses comes first.
      return at(a) != at(b) ? at(a) < at(b) : length(a) > length(b);
    });
    json all = names_;
    for (json& event : events_) all.push_back(std::move(event));
    return all;
  }

 private:
  void addName(const char* what, int process, int thread, json value) {
    const char* key = std::string_view(what).ends_with("sort_index") ? "sort_index" : "name";
    names_.push_back(
        {{"ph", "M"}, {"name", what}, {"pid", process}, {"tid", thread}, {"ts", 0}, {"args", {{key, value}}}});
  }

  void addRank(const RankSnapshot& rank, int process) {
    const auto& log = rank.log;
    addName("process_name", process, 0,
            log.identity.jobRank >= 0
                ? fmt::format("rank {} ({}, process {})", log.identity.jobRank, log.identity.host, log.pid)
                : fmt::format("{}, process {}", log.identity.host, log.pid));
    addName("process_sort_index", process, 0, process);
    // One clock a host: the first log's idea of the wall clock serves all of that host.
    const auto wall = static_cast<std::int64_t>(std::llround(std::clamp(log.startWallTime, 0.0, 4e9) * 1e9));
    const std::int64_t offset = offsets_.try_emplace(log.identity.host, wall - log.startTime.count()).first->second;
    std::map<std::pair<CommunicatorId, Rank>, int> threads;
    const auto threadOf = [&](const CallRecord& call) {
      const auto [known, isNew] =
          threads.try_emplace({call.communicator, call.rank}, static_cast<int>(threads.size()) + 1);
      if (isNew) {
        addName("thread_name", process, known->second, nameOf(log, call));
        addName("thread_sort_index", process, known->second, known->second);
      }
      return known->second;
    };
    using Key = std::tuple<CommunicatorId, Rank, std::uint64_t, Operation, std::int32_t>;
    std::map<Key, CallLabels> labels;
    for (const LabelledCall& call : log.labelled)
      labels[{call.communicator, call.rank, call.sequence, call.operation, call.peer}] = call.labels;
    const auto labelsOf = [&](const CallRecord& call) {
      const auto known = labels.find({call.communicator, call.rank, call.sequence, call.operation, call.peer});
      return known == labels.end() ? CallLabels() : known->second;
    };
    const auto add = [&](const CallRecord& call, Nanoseconds stop, bool inFlight) {
      if (stop < call.enter) return;  // no times that anybody measured
      slices_.push_back({call, process, threadOf(call), log.identity.host, call.enter.count() + offset,
                         stop.count() + offset, inFlight, labelsOf(call)});
    };
    for (const CallRecord& call : log.latest) add(call, call.leave, false);
    for (const CallRecord& call : log.inFlight) add(call, rank.now, true);
    addChannels(log, process, static_cast<int>(threads.size()), offset);
  }

  // A thread for what a channel sends and one for what it receives. Calls of several threads may share a channel, and a
  // tree's rank has several peers: transfers that overlap stand in further threads.
  void addChannels(const instrument::CallLogView& log, int process, int threads, std::int64_t offset) {
    struct Lane {
      int thread;
      std::int64_t until;
    };
    std::map<std::tuple<CommunicatorId, std::int32_t, bool, bool>, std::vector<Lane>> channels;
    std::vector<TransferTiming> transfers = log.transfers;
    std::sort(transfers.begin(), transfers.end(), [](const auto& a, const auto& b) { return a.start < b.start; });
    for (const TransferTiming& transfer : transfers) {
      if (transfer.stop < transfer.start || transfer.peer < 0) continue;  // no times that anybody measured
      const std::int64_t start = transfer.start.count() + offset, stop = transfer.stop.count() + offset;
      auto& lanes = channels[{transfer.communicator, transfer.channel, transfer.sending, isOwnWork(transfer)}];
      auto lane = std::find_if(lanes.begin(), lanes.end(), [&](const Lane& each) { return each.until <= start; });
      if (lane == lanes.end()) lane = lanes.insert(lane, {0, 0});
      if (lane->thread == 0) lane->thread = ++threads;
      lane->until = stop;
      channelNames_.try_emplace(
          {process, lane->thread},
          fmt::format("{} channel {} {}{}", communicatorNames_.nameOf(transfer.communicator), transfer.channel,
                      isOwnWork(transfer) ? "works"
                      : transfer.sending  ? "sends"
                                          : "receives",
                      lanes.size() > 1 && lane != lanes.begin() ? fmt::format(" ({})", lane - lanes.begin() + 1) : ""));
      channelSlices_.push_back({transfer, process, lane->thread, peerOf(log, transfer), start, stop});
    }
  }

  /// Of the channel itself, as a profiler tells it: its peer is the rank's own, and nothing is carried.
  static bool isOwnWork(const TransferTiming& transfer) { return transfer.bytes == 0 && !transfer.sending; }

  static std::string peerOf(const instrument::CallLogView& log, const TransferTiming& transfer) {
    const auto peer = static_cast<std::size_t>(transfer.peer);
    for (const CommunicatorView& view : log.communicators)
      if (view.id == transfer.communicator && peer < view.members.size() && view.members[peer].jobRank >= 0)
        return fmt::format("rank {}", view.members[peer].jobRank);
    return fmt::format("member {}", transfer.peer);
  }

  // Timing is on for moments only; what is older than the calls would stretch the picture.
  void addTransfers() {
    std::set<std::pair<int, int>> named;
    for (const ChannelSlice& slice : channelSlices_) {
      if (slice.start < first_) continue;
      if (named.insert({slice.process, slice.thread}).second) {
        addName("thread_name", slice.process, slice.thread, channelNames_.at({slice.process, slice.thread}));
        addName("thread_sort_index", slice.process, slice.thread, slice.thread);
      }
      const TransferTiming& transfer = slice.transfer;
      events_.push_back({{"ph", "X"},
                         {"name", isOwnWork(transfer) ? "works" : (transfer.sending ? "to " : "from ") + slice.peer},
                         {"cat", "transfer"},
                         {"pid", slice.process},
                         {"tid", slice.thread},
                         {"ts", microseconds(slice.start - first_)},
                         {"dur", microseconds(slice.stop - slice.start)},
                         {"args",
                          {{"communicator", fmt::format("{:016x}", transfer.communicator)},
                           {"sequence", transfer.sequence},
                           {"channel", transfer.channel},
                           {"bytes", transfer.bytes},
                           {"moving_us", microseconds(transfer.moving.count())},
                           {"waiting_us", microseconds(transfer.waiting.count())}}}});
    }
  }

  std::string nameOf(const instrument::CallLogView& log, const CallRecord& call) const {
    for (const CommunicatorView& view : log.communicators)
      if (view.id == call.communicator && view.rank == call.rank)
        return fmt::format("{}, its rank {} of {}", communicatorNames_.titleOf(view.id), view.rank, view.size);
    return communicatorNames_.titleOf(call.communicator);
  }

  using CallKey = std::pair<CommunicatorId, std::uint64_t>;

  // Who came last to a collective, where all of its members that made calls are known.
  void findLastArrivals() {
    for (const Slice& slice : slices_) {
      if (isPointToPoint(slice.call.operation) || slice.inFlight) continue;
      Arrivals& arrivals = arrivals_[{slice.call.communicator, slice.call.sequence}];
      ++arrivals.members;
      if (arrivals.host.empty()) arrivals.host = slice.host;
      arrivals.oneHost = arrivals.oneHost && arrivals.host == slice.host;
      if (!arrivals.last || slice.start > arrivals.last->start) arrivals.last = &slice;
      members_[slice.call.communicator].insert({slice.process, slice.call.rank});
    }
  }

  json event(const char* phase, const std::string& name, const char* category, const Slice& slice,
             std::int64_t start) const {
    return {{"ph", phase},          {"name", name},        {"cat", category},
            {"pid", slice.process}, {"tid", slice.thread}, {"ts", microseconds(start - first_)}};
  }

  void addSlice(const Slice& slice) {
    const CallRecord& call = slice.call;
    json made = event("X", falcon::nameOf(call.operation), isPointToPoint(call.operation) ? "message" : "collective",
                      slice, slice.start);
    made["dur"] = microseconds(slice.stop - slice.start);
    made["args"] = {{"communicator", fmt::format("{:016x}", call.communicator)},
                    {"sequence", call.sequence},
                    {"count", call.count},
                    {"type", falcon::nameOf(call.type)},
                    {"bytes", call.count * sizeOf(call.type)},
                    {"thread", call.thread},
                    {"grouped", call.grouped},
                    {"in_flight", slice.inFlight}};
    if (call.peer >= 0) made["args"]["peer"] = call.peer;
    if (slice.labels.tag != 0) made["args"]["tag"] = slice.labels.tag;
    if (slice.labels.iteration != CallLabels::none) made["args"]["iteration"] = slice.labels.iteration;
    if (slice.labels.phase != CallLabels::none) made["args"]["phase"] = slice.labels.phase;
    if (slice.labels.group != CallLabels::none) made["args"]["group"] = slice.labels.group;
    const auto arrivals = arrivals_.find({call.communicator, call.sequence});
    if (isPointToPoint(call.operation) || slice.inFlight || arrivals == arrivals_.end() || !arrivals->second.oneHost ||
        arrivals->second.members != members_[call.communicator].size() || arrivals->second.members < 2) {
      events_.push_back(std::move(made));
      return;
    }
    const Slice& last = *arrivals->second.last;
    const std::int64_t until = std::min(last.start, slice.stop);
    made["args"]["waiting_us"] = microseconds(until - slice.start);
    events_.push_back(std::move(made));
    if (until <= slice.start) return;
    json waiting = event("X", fmt::format("waiting for rank {}", last.process), "waiting", slice, slice.start);
    waiting["dur"] = microseconds(until - slice.start);
    waiting["args"] = {{"last", last.process}};
    events_.push_back(std::move(waiting));
  }

  // From a Send to the Recv with the same number.
  void addFlows() {
    std::map<std::tuple<CommunicatorId, Rank, Rank, std::uint64_t>, const Slice*> sent;
    for (const Slice& slice : slices_)
      if (slice.call.operation == Operation::send)
        sent[{slice.call.communicator, slice.call.rank, slice.call.peer, slice.call.sequence}] = &slice;
    int id = 0;
    for (const Slice& slice : slices_) {
      if (slice.call.operation != Operation::receive) continue;
      const auto from = sent.find({slice.call.communicator, slice.call.peer, slice.call.rank, slice.call.sequence});
      if (from == sent.end()) continue;
      const std::int64_t arrives = std::max(slice.start, from->second->start);
      if (arrives > slice.stop) continue;  // clocks of two hosts that do not agree
      json begin = event("s", "message", "message", *from->second, from->second->start);
      json end = event("f", "message", "message", slice, arrives);
      begin["id"] = end["id"] = ++id;
      end["bp"] = "e";
      events_.push_back(std::move(begin));
      events_.push_back(std::move(end));
    }
  }

  struct Arrivals {
    std::size_t members = 0;
    const Slice* last = nullptr;
    std::string host;
    bool oneHost = true;
  };

  std::map<std::string, std::int64_t> offsets_;
  std::vector<Slice> slices_;
  std::vector<ChannelSlice> channelSlices_;
  std::map<std::pair<int, int>, std::string> channelNames_;  // of channels, until a slice of them is there
  std::int64_t first_ = INT64_MAX;
  std::map<CallKey, Arrivals> arrivals_;
  std::map<CommunicatorId, std::set<std::pair<int, Rank>>> members_;
  const instrument::CommunicatorNames communicatorNames_;
  json names_ = json::array();
  std::vector<json> events_;
};

}  // namespace

json chromeTrace(std::span<const RankSnapshot> ranks) {
  json trace = {{"displayTimeUnit", "ms"}, {"traceEvents", Writer(ranks).events()}};
  if (!ranks.empty())
    trace["otherData"] = {{"job", ranks.front().log.identity.job}, {"ranks", ranks.size()}, {"by", "NCCL Falcon"}};
  return trace;
}

}  // namespace falcon::trace
