#include "jobs/hang_command.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <nlohmann/json.hpp>
#include <thread>

#include "diagnose/hang_analysis.h"
#include "jobs/recording_files.h"
#include "json_text.h"
#include "print.h"

namespace falcon::jobs {
namespace {

using diagnose::analyseHang;
using diagnose::CommunicatorProgress;
using diagnose::Finding;
using diagnose::HangFindings;
using diagnose::MemberName;
using diagnose::RankWhere;
using instrument::RankSnapshot;
using json = nlohmann::json;

// Enough to see where calls began to differ; a snapshot of a thousand ranks stays small.
constexpr std::size_t records = 2048;

std::vector<std::string> shortNamesOf(const std::vector<MemberName>& members) {
  std::vector<std::string> names;
  for (const MemberName& member : members)
    names.push_back(member.jobRank >= 0 ? std::to_string(member.jobRank) : member.text);
  return names;
}

json toJson(const std::vector<MemberName>& members) {
  json list = json::array();
  for (const MemberName& member : members)
    list.push_back({{"rank", member.jobRank >= 0 ? json(member.jobRank) : json()},
                    {"communicator_rank", member.rank},
                    {"name", member.text}});
  return list;
}

json toJson(const CallRecord& call) {
  return {{"operation", falcon::nameOf(call.operation)},
          {"sequence", call.sequence},
          {"count", call.count},
          {"type", falcon::nameOf(call.type)},
          {"peer", call.peer >= 0 ? json(call.peer) : json()},
          {"communicator", fmt::format("{:016x}", call.communicator)},
          {"thread", call.thread}};
}

json toJson(const instrument::MakingView& making) {
  return {{"function", nameOf(making.kind)},
          {"rank", making.rank},
          {"size", making.size},
          {"name", making.name},
          {"met", making.met}};
}

json toJson(const instrument::OpenRange& range, Nanoseconds now) {
  return {{"name", range.name}, {"thread", range.thread}, {"seconds", seconds(now - range.begin)}};
}

json toJson(const HangFindings& report) {
  json findings = json::array(), ranks = json::array(), communicators = json::array();
  for (const Finding& finding : report.findings)
    findings.push_back({{"kind", nameOf(finding.kind)},
                        {"cause", finding.cause},
                        {"communicator", fmt::format("{:016x}", finding.communicator)},
                        {"call", finding.kind == Finding::Kind::dead || finding.making ? json() : toJson(finding.call)},
                        {"making", finding.making ? toJson(*finding.making) : json()},
                        {"culprits", toJson(finding.culprits)},
                        {"waiting", toJson(finding.waiting)},
                        {"seconds", seconds(finding.longest)},
                        {"text", finding.text}});
  for (const RankWhere& rank : report.ranks) {
    json calls = json::array(), makings = json::array(), ranges = json::array();
    for (const CallRecord& call : rank.inFlight) calls.push_back(toJson(call));
    for (const auto& making : rank.makings) makings.push_back(toJson(making));
    for (const auto& range : rank.ranges) ranges.push_back(toJson(range, rank.now));
    ranks.push_back({{"rank", rank.jobRank},
                     {"pid", rank.pid},
                     {"host", rank.host},
                     {"process", nameOf(rank.process)},
                     {"held", rank.held},
                     {"in_flight", calls},
                     {"makings", makings},
                     {"ranges", ranges},
                     {"text", rank.text}});
  }
  for (const CommunicatorProgress& communicator : report.communicators) {
    json at = json::array();
    for (const auto& each : communicator.at)
      at.push_back({{"collectives", each.collectives}, {"members", toJson(each.members)}});
    communicators.push_back({{"id", fmt::format("{:016x}", communicator.id)},
                             {"name", communicator.name},
                             {"size", communicator.size},
                             {"at", at},
                             {"unknown", toJson(communicator.unknown)}});
  }
  return {{"hang", report.hang()}, {"over", report.over}, {"circle", report.circle},
          {"findings", findings},  {"ranks", ranks},      {"communicators", communicators}};
}

void print(const std::string& job, const HangFindings& report) {
  const char* over = !report.hang() ? "ended, no hang" : "ENDED IN A HANG OR A CRASH";
  tools::print(stdout, "job {}: {}\n", job, report.over ? over : report.hang() ? "HANGS" : "no hang");
  if (report.circle) tools::print(stdout, "  ranks wait for each other in a circle:\n");
  for (const Finding& finding : report.findings)
    tools::print(stdout, "  {}{}\n", finding.cause || report.circle ? "" : "(follows) ", finding.text);
  tools::print(stdout, "  {:>4}  {:>8}  {:<8}  {}\n", "rank", "pid", "process", "where");
  for (const RankWhere& rank : report.ranks)
    tools::print(stdout, "  {:>4}  {:>8}  {:<8}  {}\n", rank.jobRank, rank.pid, nameOf(rank.process), rank.text);
  for (const CommunicatorProgress& communicator : report.communicators) {
    std::vector<std::string> parts;
    for (const auto& each : communicator.at)
      parts.push_back(
          communicator.at.size() == 1 && communicator.unknown.empty()
              ? fmt::format("all have entered {} collectives", each.collectives)
              : fmt::format("{} entered by {}", each.collectives, fmt::join(shortNamesOf(each.members), ", ")));
    if (!communicator.unknown.empty())
      parts.push_back(fmt::format("no log here of {}", fmt::join(shortNamesOf(communicator.unknown), ", ")));
    tools::print(stdout, "  communicator {}, {} ranks: {}\n", communicator.name, communicator.size,
                 fmt::to_string(fmt::join(parts, "; ")));
  }
}

Nanoseconds patienceFor(const std::vector<RankSnapshot>& ranks, std::optional<double> wanted) {
  double limit = 5;
  for (const RankSnapshot& rank : ranks) limit = std::max(limit, 3 * rank.log.iterationSeconds);
  return std::chrono::duration_cast<Nanoseconds>(
      std::chrono::duration<double>(wanted.value_or(std::min(limit, 3600.0))));
}

HangFindings look(const JobFiles& job, std::optional<double> patience) {
  auto ranks = snapshotsOf(job, records);
  HangFindings report = analyseHang(ranks, patienceFor(ranks, patience));
  if (!report.hang()) return report;
  // The logs are not read at the same moment: what moves looks like a hang once, but not twice.
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
  ranks = snapshotsOf(job, records);
  return analyseHang(ranks, patienceFor(ranks, patience));
}

int show(const std::vector<std::pair<std::string, HangFindings>>& reports, bool asJson) {
  bool hang = false;
  json list = json::array();
  for (const auto& [job, report] : reports) {
    hang = hang || report.hang();
    if (asJson) {
      json entry = toJson(report);
      entry["job"] = job;
      list.push_back(std::move(entry));
    } else {
      print(job, report);
    }
  }
  if (asJson) fmt::print("{}\n", tools::jsonText(list, 2));
  return hang ? 3 : 0;
}

}  // namespace

std::vector<RankSnapshot> snapshotsOf(const JobFiles& job, std::size_t wanted) {
  std::vector<RankSnapshot> snapshots;
  for (const RankFile& rank : job.ranks) {
    auto log = instrument::readCallLog(rank.path, wanted);
    if (!log) continue;
    snapshots.push_back(instrument::snapshotOf(std::move(*log)));
    if (auto ranges = rank.rangeLog(0)) snapshots.back().ranges = std::move(ranges->open);
  }
  return snapshots;
}

std::optional<Nanoseconds> openTooLong(const JobFiles& job) {
  std::vector<RankSnapshot> ranks;
  for (const RankFile& rank : job.ranks) ranks.push_back(instrument::snapshotOf(rank.view));
  Nanoseconds longest{0};
  for (const RankSnapshot& rank : ranks) {
    if (instrument::isGone(rank.process) || rank.isHeld()) continue;
    for (const CallRecord& call : rank.log.inFlight) longest = std::max(longest, rank.now - call.enter);
    for (const auto& making : rank.log.makings) longest = std::max(longest, rank.now - making.enter);
  }
  return longest >= patienceFor(ranks, std::nullopt) ? std::optional(longest) : std::nullopt;
}

int showHang(const std::string& name, std::optional<double> patience, bool asJson) {
  auto jobs = findJobs(name);
  if (!jobs) return 1;
  if (name.empty()) {
    std::erase_if(*jobs, [](const JobFiles& job) { return !job.running(); });
    if (jobs->empty())
      tools::print(stderr, "falcon status: no job of this user runs on this host with NCCL_FALCON=1\n");
  }
  std::vector<std::pair<std::string, HangFindings>> reports;
  for (const JobFiles& job : *jobs) reports.emplace_back(job.name, look(job, patience));
  return show(reports, asJson);
}

int showRecordedHang(const std::vector<std::string>& files, std::optional<double> patience, bool asJson) {
  const auto ranks = readRecordings(files);
  if (!ranks) {
    tools::print(stderr, "falcon status: {}\n", ranks.error().message());
    return 1;
  }
  std::map<std::string, std::vector<RankSnapshot>> byJob;
  for (const RankSnapshot& rank : *ranks) byJob[rank.log.identity.job].push_back(rank);
  std::vector<std::pair<std::string, HangFindings>> reports;
  for (const auto& [job, members] : byJob)
    reports.emplace_back(job, analyseHang(members, patienceFor(members, patience)));
  return show(reports, asJson);
}

}  // namespace falcon::jobs
