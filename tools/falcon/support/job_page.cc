#include "support/job_page.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>

#include "diagnose/layout_guess.h"
#include "events/event_tail.h"
#include "instrument/communicator_names.h"
#include "instrument/timeline.h"
#include "support/phases.h"
#include "support/waits.h"

namespace falcon::support {
namespace {

constexpr std::size_t wantedCalls = 1 << 16;
constexpr std::size_t mostColumns = 12, mostRangeColumns = 6, mostArrowsARank = 3;
constexpr double leastArrow = 0.01;

struct JobCalls {
  instrument::JobTimeline timeline;
  MembersOf members;
  std::vector<instrument::CommunicatorShape> shapes;
  instrument::CommunicatorNames names;
  std::map<Rank, std::map<std::string, double>> ranges;  ///< shares of the timeline by the application's names
  int worldSize = 0;
  bool vendor = false;  ///< some calls return before they are done
  std::string missing;  ///< why there is nothing to draw; "" where there is
};

JobCalls callsOf(const jobs::JobFiles& job) {
  JobCalls calls;
  std::vector<instrument::CallLogView> logs;
  for (const jobs::RankFile& file : job.ranks)
    if (auto log = instrument::readCallLog(file.path, wantedCalls)) logs.push_back(std::move(*log));
  std::vector<const instrument::CallLogView*> views;
  for (const instrument::CallLogView& log : logs) {
    views.push_back(&log);
    calls.worldSize = std::max(calls.worldSize, log.identity.worldSize);
    instrument::RankTimeline rank{log.identity.jobRank, {}};
    for (const CallRecord& call : log.latest)
      rank.calls.push_back({call.communicator, call.operation, call.peer, call.sequence, 0, call.enter, call.leave});
    std::stable_sort(rank.calls.begin(), rank.calls.end(),
                     [](const auto& a, const auto& b) { return a.enter < b.enter; });
    for (const auto& communicator : log.communicators) calls.vendor = calls.vendor || communicator.vendor;
    if (!rank.calls.empty()) calls.timeline.ranks.push_back(std::move(rank));
  }
  for (instrument::CommunicatorShape& shape : instrument::shapesIn(views)) {
    if (shape.members.empty() || std::find(shape.members.begin(), shape.members.end(), -1) != shape.members.end())
      continue;
    calls.members[shape.communicator] = shape.members;
    calls.shapes.push_back(std::move(shape));
  }
  calls.names = instrument::namesIn(views);
  std::tie(calls.timeline.start, calls.timeline.end) = commonStretch(calls.timeline.ranks);
  for (const jobs::RankFile& file : job.ranks)
    if (const auto log = file.rangeLog(instrument::RangeLog::slots))
      calls.ranges[file.view.identity.jobRank] = rangeShares(*log, calls.timeline.start, calls.timeline.end);
  if (calls.timeline.ranks.empty())
    calls.missing =
        "Not measured: the call logs on this host hold no calls. A rank that ends in order gives its log's memory "
        "back; ask while the job runs, or after a crash.";
  else if (calls.timeline.start >= calls.timeline.end)
    calls.missing = "Not measured: the ranks' call logs have no stretch of time in common.";
  return calls;
}

std::string stretchText(const JobCalls& calls) {
  std::string text = fmt::format("The last {:.1f} s that the call logs of all {} ranks on this host cover.",
                                 seconds(calls.timeline.end - calls.timeline.start), calls.timeline.ranks.size());
  if (calls.worldSize > static_cast<int>(calls.timeline.ranks.size()))
    text += fmt::format(" The other {} ranks of the job are not here.",
                        calls.worldSize - static_cast<int>(calls.timeline.ranks.size()));
  if (calls.vendor) text += " Calls of the vendor's engine return before they are done: their time is not here.";
  return text;
}

std::vector<std::string> largestRanges(const JobCalls& calls) {
  std::map<std::string, double> totals;
  for (const auto& [rank, shares] : calls.ranges)
    for (const auto& [name, share] : shares) totals[name] += share;
  std::vector<std::pair<double, std::string>> largest;
  for (const auto& [name, total] : totals) largest.push_back({total, name});
  std::sort(largest.rbegin(), largest.rend());
  if (largest.size() > mostRangeColumns) largest.resize(mostRangeColumns);
  std::vector<std::string> names;
  for (auto& [total, name] : largest) names.push_back(std::move(name));
  return names;
}

report_page::HeatMap heatMapOf(const JobCalls& calls) {
  report_page::HeatMap map;
  map.note = calls.missing;
  if (!calls.missing.empty()) return map;
  const auto ranks = phasesOf(calls.timeline);
  std::map<Phase, double> totals;
  for (const RankPhases& rank : ranks)
    for (const auto& [phase, share] : rank.inside) totals[phase] += share;
  std::vector<std::pair<double, Phase>> largest;
  for (const auto& [phase, total] : totals) largest.push_back({total, phase});
  std::sort(largest.rbegin(), largest.rend());
  if (largest.size() > mostColumns) largest.resize(mostColumns);

  map.columns.push_back("outside of the library");
  const std::vector<std::string> ranges = largestRanges(calls);
  for (const std::string& name : ranges) map.columns.push_back(name);
  std::set<std::string> titles;
  for (const auto& [total, phase] : largest) {
    map.columns.push_back(fmt::format("{}, {}", falcon::nameOf(phase.second), calls.names.nameOf(phase.first)));
    titles.insert(calls.names.titleOf(phase.first));
  }
  map.legend.assign(titles.begin(), titles.end());
  for (const RankPhases& rank : ranks) {
    map.rows.push_back(fmt::format("rank {}", rank.rank));
    std::vector<std::optional<double>> row{rank.outside};
    const auto own = calls.ranges.find(rank.rank);
    for (const std::string& name : ranges)
      row.push_back(own != calls.ranges.end() && own->second.contains(name) ? std::optional(own->second.at(name))
                                                                            : std::nullopt);
    for (const auto& [total, phase] : largest)
      row.push_back(rank.inside.contains(phase) ? std::optional(rank.inside.at(phase)) : std::nullopt);
    map.shares.push_back(std::move(row));
  }
  map.note = stretchText(calls) +
             " Red: more than the median rank; blue: less. A rank that computes slowly is red outside of the library.";
  if (!ranges.empty()) map.note += " Columns beside that are the code's own ranges, calls inside of them included.";
  if (totals.size() > mostColumns)
    map.note += fmt::format(" {} smaller phases are left out.", totals.size() - mostColumns);
  return map;
}

report_page::WaitView waitViewOf(const JobCalls& calls) {
  report_page::WaitView view;
  view.note = calls.missing;
  if (!calls.missing.empty()) return view;
  for (const auto& [who, share] : waitsOf(calls.timeline, calls.members))
    if (share >= leastArrow) view.arrows.push_back({who.first, who.second, share});
  std::sort(view.arrows.begin(), view.arrows.end(), [](const auto& a, const auto& b) { return a.share > b.share; });
  const std::size_t most = mostArrowsARank * calls.timeline.ranks.size(), left = view.arrows.size();
  if (left > most) view.arrows.resize(most);

  const auto layout = calls.worldSize > 0 ? diagnose::guessLayout(calls.worldSize, calls.shapes) : std::nullopt;
  int place = 0;
  for (const auto& rank : calls.timeline.ranks) {
    const topology::Coordinates at = layout ? layout->at(rank.rank) : topology::Coordinates{0, place++, 0};
    view.ranks.push_back({rank.rank, at.data, at.pipeline, at.tensor});
  }
  view.note = stretchText(calls);
  view.note +=
      layout
          ? fmt::format(" The communicators' shapes say {} replicas of {} pipeline stages of {} tensor shards.",
                        layout->sizes.dataSize, layout->sizes.pipelineSize, layout->sizes.tensorSize)
          : " The communicators' shapes do not tell data, pipeline and tensor parallelism apart: ranks are in a row.";
  view.note += view.arrows.empty()
                   ? " Nobody waits for one other rank for 1 % of the time."
                   : " An arrow points from the rank that stands in a call to the one that has not entered it.";
  if (left > most) view.note += fmt::format(" {} weaker arrows are left out.", left - most);
  return view;
}

bool canBeRead(const std::string& path) {
  std::error_code ignored;
  return std::filesystem::is_regular_file(path, ignored) && std::ifstream(path).is_open();
}

double numberAt(const nlohmann::json& event, const char* key) {
  return event.contains(key) && event[key].is_number() ? event[key].get<double>() : 0;
}

// Iteration times are kept by nobody; the events have the level before and after each change.
void addEvents(report_page::Page& page, const std::vector<std::string>& lines, bool running) {
  report_page::Series levels{"iteration time, as the events state it", "#2471a3", {}};
  double begin = -1, last = 0;
  for (const std::string& line : lines) {
    const auto event = nlohmann::json::parse(line, nullptr, false);
    if (!event.is_object() || !event.contains("kind") || !event["kind"].is_string()) continue;
    const double time = numberAt(event, "wall_time_s");
    if (begin < 0) begin = time;
    const double second = std::max(0.0, time - begin);
    const auto text = event.find("text");
    page.marks.push_back({second, event["kind"].get<std::string>(),
                          text != event.end() && text->is_string() ? text->get<std::string>() : "",
                          static_cast<int>(std::clamp(numberAt(event, "severity"), 0.0, 4.0))});
    if (const double before = numberAt(event, "before_ms"); before > 0) levels.points.push_back({second, before});
    if (const double after = numberAt(event, "after_ms"); after > 0) levels.points.push_back({second, last = after});
  }
  if (levels.points.empty()) return;
  const double now = std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
  levels.points.push_back({std::max(page.marks.back().seconds, running ? now - begin : 0), last});
  page.series.push_back(std::move(levels));
}

}  // namespace

report_page::Page pageOf(const jobs::JobFiles& job) {
  report_page::Page page;
  const std::vector<std::string> events = events::allEvents(job.events, job.name);
  const auto& first = job.ranks.front().view;
  page.title = "NCCL Falcon: job " + first.identity.job;
  page.subtitle =
      fmt::format("{} of {} ranks on {}, {}.", job.ranks.size(),
                  first.identity.worldSize > 0 ? std::to_string(first.identity.worldSize) : "an unknown number of",
                  first.identity.host, job.running() ? "running" : "ended");
  addEvents(page, events, job.running());
  if (page.marks.empty() && std::filesystem::path(job.events).parent_path() != job.folder && !canBeRead(job.events))
    page.eventsNote = fmt::format(
        "Not here: this job writes its events to {} (NCCL_FALCON_EVENTS), which is no file that can be read now.",
        job.events);
  const JobCalls calls = callsOf(job);
  page.heat = heatMapOf(calls);
  page.waits = waitViewOf(calls);
  return page;
}

}  // namespace falcon::support
