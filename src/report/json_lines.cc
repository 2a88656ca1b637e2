#include "report/json_lines.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cmath>
#include <utility>

#include "base/escaped.h"
#include "base/log.h"
#include "base/own_folder.h"
#include "base/system_error.h"

namespace falcon::report {
namespace {

const std::string jobKey = R"(,"job":)";

std::string rangesJson(const std::vector<RangeGrowth>& ranges) {
  std::string json;
  for (const RangeGrowth& range : ranges)
    json += fmt::format(R"({}{{"rank":{},"name":{},"before_ms":{:.3f},"after_ms":{:.3f}}})", json.empty() ? "" : ",",
                        range.rank, jsonString(range.name), range.beforeMilliseconds, range.afterMilliseconds);
  return "[" + json + "]";
}

std::string suspectsJson(const std::vector<Suspect>& suspects) {
  std::string json;
  for (const Suspect& suspect : suspects) {
    std::string ranks;
    for (const Rank rank : suspect.ranks) ranks += (ranks.empty() ? "" : ",") + std::to_string(rank);
    json += fmt::format(R"({}{{"ranks":[{}],"growth":{:.3f}}})", json.empty() ? "" : ",", ranks, suspect.growth);
  }
  return "[" + json + "]";
}

std::string observedJson(const std::vector<Observed>& observed) {
  std::string json;
  for (const Observed& each : observed) {
    json += fmt::format(R"({}{{"what":{},)", json.empty() ? "" : ",", jsonString(each.what));
    json += each.link.from < 0 ? fmt::format(R"("rank":{},)", each.rank)
                               : fmt::format(R"("from":{},"to":{},)", each.link.from, each.link.to);
    if (std::isfinite(each.slower)) json += fmt::format(R"("slower":{:.4f},)", each.slower);
    json += fmt::format(R"("deviation":{:.4f}}})", each.deviation);
  }
  return "[" + json + "]";
}

std::string culpritJson(const Culprit& culprit) {
  if (culprit.kind == CulpritKind::rank) return fmt::format(R"({{"kind":"rank","rank":{}}})", culprit.rank);
  if (culprit.kind == CulpritKind::host) return R"({"kind":"host","host":)" + jsonString(culprit.host) + "}";
  return fmt::format(R"({{"kind":"link","from":{},"to":{},"both_ways":{}}})", culprit.link.from, culprit.link.to,
                     culprit.bothWays);
}

}  // namespace

std::string toJson(const Event& event, const std::string& job) {
  std::string json =
      fmt::format(R"({{"v":{},"kind":"{}","time_s":{:.6f},"wall_time_s":{:.3f},"iteration":{})", eventSchemaVersion,
                  nameOf(event.kind), seconds(event.time), event.wallTime, event.iteration);
  if (!job.empty()) json += jobKey + jsonString(job);
  if (event.beforeMilliseconds > 0) json += fmt::format(R"(,"before_ms":{:.3f})", event.beforeMilliseconds);
  if (event.afterMilliseconds > 0) json += fmt::format(R"(,"after_ms":{:.3f})", event.afterMilliseconds);
  if (event.confidence > 0) json += fmt::format(R"(,"confidence":{:.3f})", event.confidence);
  if (event.severity > 0) json += fmt::format(R"(,"severity":{})", event.severity);
  if (event.durationSeconds > 0) json += fmt::format(R"(,"duration_s":{:.3f})", event.durationSeconds);
  if (event.culprit.kind != CulpritKind::none) json += ",\"culprit\":" + culpritJson(event.culprit);
  if (!event.suspects.empty()) json += ",\"suspects\":" + suspectsJson(event.suspects);
  if (!event.ranges.empty()) json += ",\"ranges\":" + rangesJson(event.ranges);
  if (!event.observed.empty()) json += ",\"observed\":" + observedJson(event.observed);
  if (!event.action.empty()) json += ",\"action\":" + jsonString(event.action);
  return json + ",\"text\":" + jsonString(event.text) + "}";
}

// What is quoted in a text has its quotes escaped, so the key stands nowhere else.
bool isOfJob(std::string_view line, const std::string& job) {
  return job.empty() || line.find(jobKey) == line.npos || line.find(jobKey + jsonString(job)) != line.npos;
}

Result<JsonLinesSink> JsonLinesSink::open(const std::string& path, std::int64_t mostBytes, Place place,
                                          const std::string& job) {
  JsonLinesSink sink(path, mostBytes, place, job);
  if (const auto opened = sink.reopen(); !opened) return opened.error();
  return sink;
}

Status JsonLinesSink::reopen() {
  // A pipe that nobody reads, or not fast enough, may not keep the writer waiting: a job's end waits for it.
  const int flags =
      O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NONBLOCK | (place_ == Place::ownFolder ? O_NOFOLLOW : 0);
  FileDescriptor file = newDescriptor(::open(path_.c_str(), flags, 0600));
  if (!file && errno == ELOOP) return Error::system("events file {} is a link, and is not trusted: remove it", path_);
  if (!file) return Error::system("events file {} cannot be opened: {}", path_, reasonOf(errno));
  struct stat facts {};
  if (place_ == Place::ownFolder && ::fstat(file.get(), &facts) == 0 && facts.st_uid != getuid())
    return Error::system("events file {} belongs to user {} instead of user {}, and is not trusted: remove it", path_,
                         facts.st_uid, getuid());
  keepOwnersRights(file.get());
  file_ = std::move(file);
  return {};
}

// Another rank may have been the controller, and have moved the file on, since the last event. What cannot be moved or
// opened stays as it is: an event in a file that is too long is better than none.
void JsonLinesSink::makeRoomFor(std::size_t bytes) {
  struct stat open {
  }, named{};
  if (::fstat(file_.get(), &open) != 0 || !S_ISREG(open.st_mode)) return;
  if (::stat(path_.c_str(), &named) != 0 || named.st_ino != open.st_ino || named.st_dev != open.st_dev) {
    if (const auto opened = reopen(); !opened) return sayMissing(opened.error().message());
    if (::fstat(file_.get(), &open) != 0) return;
  }
  if (mostBytes_ <= 0 || open.st_size == 0 || open.st_size + static_cast<std::int64_t>(bytes) <= mostBytes_) return;
  for (int age = eventFilesKept - 1; age >= 1; --age)
    (void)::rename(rotatedName(path_, age).c_str(), rotatedName(path_, age + 1).c_str());
  if (::rename(path_.c_str(), rotatedName(path_, 1).c_str()) == 0) (void)reopen();
}

void JsonLinesSink::add(const Event& event) {
  // Behind a line that found no room for its end, a fresh one: what is no JSON is that one alone.
  const std::string line = (cutShort_ ? "\n" : "") + toJson(event, job_) + "\n";
  makeRoomFor(line.size());
  const ssize_t written = ::write(file_.get(), line.data(), line.size());
  const int reason = errno;
  if (written >= 0) cutShort_ = written < static_cast<ssize_t>(line.size());
  if (written < 0 || cutShort_)
    sayMissing(fmt::format("events file {} cannot be written: {}", path_,
                           written < 0 ? reasonOf(reason) : "there was room for a part of a line"));
}

void JsonLinesSink::sayMissing(const std::string& why) {
  if (std::exchange(failed_, true)) return;
  log::notice("{}; events may be missing there", why);
}

std::string rotatedName(const std::string& path, int age) {
  return fmt::format("{}.{}", path, age);
}

}  // namespace falcon::report
