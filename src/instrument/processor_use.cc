#include "instrument/processor_use.h"

#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "base/folder_names.h"
#include "base/text.h"

namespace falcon::instrument {
namespace {

constexpr int shareOfTime = 1000;  // reading takes one part of so many
// Who a process has started is looked for less often: that lists all of its threads.
constexpr int descendantsShareOfTime = 10'000;
constexpr Nanoseconds descendantsInterval = 2s;
constexpr std::size_t mostDescendants = 4096;

double ticksPerSecond() {
  return static_cast<double>(std::max(1L, sysconf(_SC_CLK_TCK)));
}

double secondsOf(const timeval& time) {
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6;
}

/// Of this process alone, and of its children that were waited for.
double ownSeconds() {
  timespec own{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &own);
  rusage children{};
  getrusage(RUSAGE_CHILDREN, &children);
  return static_cast<double>(own.tv_sec) + static_cast<double>(own.tv_nsec) * 1e-9 + secondsOf(children.ru_utime) +
         secondsOf(children.ru_stime);
}

/// Children that any thread of a process has started and that live. Empty where the kernel lists none
/// (CONFIG_PROC_CHILDREN).
std::vector<pid_t> childrenOf(const std::string& process) {
  std::vector<pid_t> children;
  const std::string folder = "/proc/" + process + "/task";
  const auto threads = falcon::namesIn(folder);
  if (!threads) return children;  // it has ended
  for (const std::string& thread : *threads) {
    const std::string text = readText(folder + "/" + thread + "/children");
    for (const auto word : split(text, ' '))
      if (const auto child = leadingNumber<pid_t>(word)) children.push_back(*child);
  }
  return children;
}

/// That this thread has run.
Nanoseconds threadTime() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return std::chrono::seconds(time.tv_sec) + Nanoseconds(time.tv_nsec);
}

double between(double first, double second, double share) {
  return first + (second - first) * share;
}

}  // namespace

std::optional<HostTicks> parseHostTicks(std::string_view stat) {
  constexpr std::string_view name = "cpu ";
  if (!stat.starts_with(name)) return std::nullopt;
  std::string_view line = stat.substr(0, stat.find('\n'));
  line.remove_prefix(name.size());
  std::vector<double> fields;
  for (const auto word : split(line, ' '))
    if (const auto value = leadingNumber<std::uint64_t>(word)) fields.push_back(static_cast<double>(*value));
  enum { user, nice, system, idle, ioWait, irq, softIrq, steal, least };
  if (fields.size() < least) return std::nullopt;
  return HostTicks{fields[user] + fields[nice] + fields[system] + fields[irq] + fields[softIrq], fields[steal]};
}

std::optional<double> parseProcessTicks(std::string_view stat) {
  const auto name = stat.rfind(')');
  if (name == stat.npos) return std::nullopt;
  const auto fields = split(stat.substr(name + 1), ' ');  // the first is empty, the second the state: field 3
  constexpr std::size_t userTime = 14 - 2, childrensSystemTime = 17 - 2;
  if (fields.size() <= childrensSystemTime) return std::nullopt;
  double ticks = 0;
  for (auto field = userTime; field <= childrensSystemTime; ++field) {
    const auto value = leadingNumber<std::int64_t>(fields[field]);
    if (!value) return std::nullopt;
    ticks += static_cast<double>(*value);
  }
  return ticks;
}

void ProcessorMeter::tick() {
  const Nanoseconds now = clock_.now();
  if (now < due_) return;
  Nanoseconds began = threadTime();
  if (now >= descendantsDue_) {
    findDescendants();
    descendantsDue_ = now + std::max(descendantsInterval, descendantsShareOfTime * (threadTime() - began));
    began = threadTime();
  }
  if (const auto reading = read()) add(*reading);
  due_ = now + std::max(shortest, shareOfTime * (threadTime() - began));
}

void ProcessorMeter::findDescendants() {
  std::set<pid_t> found;
  std::vector<std::string> next{"self"};
  while (!next.empty() && found.size() < mostDescendants) {
    const std::string process = std::move(next.back());
    next.pop_back();
    for (const pid_t child : childrenOf(process))
      if (found.insert(child).second) next.push_back(std::to_string(child));
  }
  std::erase_if(descendants_, [&](const auto& known) { return !found.contains(known.first); });
  for (const pid_t child : found) descendants_.emplace(child, std::nullopt);
}

std::optional<ProcessorReading> ProcessorMeter::read() {
  const auto host = parseHostTicks(readText("/proc/stat"));
  if (!host) return std::nullopt;
  ProcessorReading reading{clock_.now(), ownSeconds(), host->busy / ticksPerSecond(), host->stolen / ticksPerSecond()};
  for (auto& [child, before] : descendants_) {
    const auto ticks = parseProcessTicks(readText("/proc/" + std::to_string(child) + "/stat"));
    if (!ticks) continue;          // it has ended
    if (!before) before = *ticks;  // what it used before it was found was used at other times
    reading.process += (*ticks - *before) / ticksPerSecond();
  }
  return reading;
}

void ProcessorMeter::add(const ProcessorReading& reading) {
  // A child that ended and was not waited for takes its time along: nothing is used less than before.
  ProcessorReading next = reading;
  if (!readings_.empty()) {
    next.process = std::max(next.process, readings_.back().process);
    next.busy = std::max(next.busy, readings_.back().busy);
    next.stolen = std::max(next.stolen, readings_.back().stolen);
  }
  readings_.push_back(next);
  while (readings_.back().at - readings_.front().at > kept) readings_.pop_front();
}

std::optional<ProcessorReading> ProcessorMeter::at(Nanoseconds moment) const {
  if (readings_.size() < 2 || moment < readings_.front().at) return std::nullopt;
  auto later = std::lower_bound(readings_.begin() + 1, readings_.end(), moment,
                                [](const ProcessorReading& reading, Nanoseconds time) { return reading.at < time; });
  if (later == readings_.end()) --later;
  const ProcessorReading& earlier = *std::prev(later);
  if (later->at <= earlier.at || moment - later->at > later->at - earlier.at) return std::nullopt;
  const double share = seconds(moment - earlier.at) / seconds(later->at - earlier.at);
  return ProcessorReading{moment, instrument::between(earlier.process, later->process, share),
                          instrument::between(earlier.busy, later->busy, share),
                          instrument::between(earlier.stolen, later->stolen, share)};
}

std::optional<ProcessorUse> ProcessorMeter::between(Nanoseconds from, Nanoseconds to) const {
  const auto first = at(from), last = at(to);
  if (!first || !last || to <= from) return std::nullopt;
  const double elapsed = seconds(to - from);
  return ProcessorUse{last->process - first->process, (last->busy - first->busy) / elapsed,
                      (last->stolen - first->stolen) / elapsed};
}

}  // namespace falcon::instrument
