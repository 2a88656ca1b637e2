#include <algorithm>
#include <chrono>
#include <fstream>
#include <sstream>
#include <vector>

#include "base/format.h"
#include "base/whole_file.h"
#include "inject/injection.h"
#include "inject/traffic_limit.h"
#include "inject/watch_time.h"

namespace falcon::tools {
namespace {

constexpr double unlimited = 100e9;
constexpr Nanoseconds linkObservation = 5s;

Status mayBeFactor(double iterations) {
  if (iterations > 1) return {};
  return Error::invalidArgument("--slowdown {}: give how many times as long iterations shall take, more than 1",
                                iterations);
}

// What the pair carried while it was watched must take (iterations - 1) times as long.
Result<double> rateFrom(std::uint64_t bytes, Link link, double iterations) {
  const double seconds = std::chrono::duration<double>(linkObservation).count();
  if (bytes == 0)
    return Error::invalidArgument(
        "the job sent nothing from rank {} to rank {} within {} s: choose a link that it uses", link.from, link.to,
        seconds);
  return std::max(leastBitsPerSecond, 8 * static_cast<double>(bytes) / seconds / (iterations - 1));
}

// Watches the pair for a while under a limit that limits nothing.
Result<double> rateFor(const RankDescription& from, const RankDescription& to, double iterations) {
  if (auto fits = mayBeFactor(iterations); !fits) return fits.error();
  const TrafficLimit watch(from, to, unlimited);
  if (auto applied = watch.apply(); !applied) return applied.error();
  const auto watched = watchFor(linkObservation);
  const auto traffic = watch.traffic();
  watch.remove();
  if (!watched) return watched.error();
  if (!traffic) return traffic.error();
  return rateFrom(traffic->bytes, {from.rank, to.rank}, iterations);
}

}  // namespace

namespace {

// What the job's socket transport says that one direction carried; nothing where it never sent there.
LinkTraffic throttleTraffic(const std::string& throttleFile, Link link) {
  LinkTraffic traffic;
  std::ifstream file(throttleFile + fmt::format(".{}-{}", link.from, link.to));
  file >> traffic.bytes >> traffic.held;
  return traffic;
}

LinkTraffic since(const LinkTraffic& before, const LinkTraffic& now) {
  return {.bytes = now.bytes - before.bytes, .packets = 0, .held = now.held - before.held};
}

// Without network namespaces: lines `from to bytes_per_second` in the file that the job's socket transport reads.
Injection::Reader throttleReader(const std::string& file, Link link) {
  const Link opposite{link.to, link.from};
  return [=, thereBefore = throttleTraffic(file, link), backBefore = throttleTraffic(file, opposite)](Outcome& now) {
    now.there = since(thereBefore, throttleTraffic(file, link));
    if (now.bothWays) now.back = since(backBefore, throttleTraffic(file, opposite));
  };
}

using Lines = std::vector<std::string>;

Lines readThrottle(const std::string& path) {
  Lines lines;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) lines.push_back(line);
  return lines;
}

Status writeThrottle(const std::string& path, const Lines& lines) {
  std::string text;
  for (const auto& line : lines) text += line + '\n';
  return writeWhole(path, text, forAllToRead);
}

bool isAbout(const std::string& line, Link link) {
  std::istringstream words(line);
  Link named;
  return words >> named.from >> named.to && named == link;
}

// Those that somebody else wrote stay.
void removeFromThrottle(const std::string& path, const Lines& ours) {
  Lines lines = readThrottle(path);
  std::erase_if(lines,
                [&](const std::string& line) { return std::find(ours.begin(), ours.end(), line) != ours.end(); });
  (void)writeThrottle(path, lines);
}

Result<double> throttleRateFor(const std::string& throttleFile, Link link, double iterations) {
  if (auto fits = mayBeFactor(iterations); !fits) return fits.error();
  const auto before = throttleTraffic(throttleFile, link);
  if (auto watched = watchFor(linkObservation); !watched) return watched.error();
  return rateFrom(since(before, throttleTraffic(throttleFile, link)).bytes, link, iterations);
}

Result<std::unique_ptr<Injection>> throttleLink(Link link, bool bothWays, const LinkSlowdown& slowdown,
                                                FileDescriptor claim) {
  Lines lines = readThrottle(slowdown.throttleFile);
  for (const auto& line : lines)
    if (isAbout(line, link) || (bothWays && isAbout(line, {link.to, link.from})))
      return Error::system("{} limits this link already, with a line that was not made here: {}; remove it first",
                           slowdown.throttleFile, line);
  double bitsPerSecond = slowdown.bitsPerSecond;
  if (slowdown.iterations != 0) {
    const auto rate = throttleRateFor(slowdown.throttleFile, link, slowdown.iterations);
    if (!rate) return rate.error();
    bitsPerSecond = *rate;
  }
  const auto bytes = static_cast<long long>(bitsPerSecond / 8);
  Lines ours{fmt::format("{} {} {}", link.from, link.to, bytes)};
  if (bothWays) ours.push_back(fmt::format("{} {} {}", link.to, link.from, bytes));
  lines.insert(lines.end(), ours.begin(), ours.end());
  auto guardian =
      Guardian::start({[path = slowdown.throttleFile, ours] { removeFromThrottle(path, ours); }, {}, claim.get()});
  if (!guardian) return guardian.error();
  Outcome outcome;
  outcome.kind = InjectionKind::slowLink;
  outcome.link = link;
  outcome.bothWays = bothWays;
  outcome.bitsPerSecond = bitsPerSecond;
  outcome.insideTransport = true;
  outcome.started = momentNow();
  auto injection = std::make_unique<Injection>(outcome, std::move(*guardian), std::move(claim),
                                               throttleReader(slowdown.throttleFile, link));
  if (auto written = writeThrottle(slowdown.throttleFile, lines); !written) return written.error();
  return injection;
}

}  // namespace

Result<std::unique_ptr<Injection>> slowLink(const JobDescription& job, Link link, bool bothWays,
                                            const LinkSlowdown& slowdown) {
  const auto from = rankOf(job, link.from);
  if (!from) return from.error();
  const auto to = rankOf(job, link.to);
  if (!to) return to.error();
  if (link.from == link.to)
    return Error::invalidArgument("--from {} --to {}: a link has two ends; choose another rank", link.from, link.to);
  if (slowdown.iterations == 0 && !(slowdown.bitsPerSecond >= leastBitsPerSecond))
    return Error::invalidArgument("a rate of {} bit/s is too slow: at least {}", slowdown.bitsPerSecond,
                                  leastBitsPerSecond);
  if (!slowdown.throttleFile.empty()) {
    auto claim = claimLink(job, link, bothWays);
    return claim ? throttleLink(link, bothWays, slowdown, std::move(*claim)) : claim.error();
  }
  if (from->netNamespace.empty())
    return Error::invalidArgument(
        "the job runs without nodes, so its ranks have no links of their own; start it with --nodes");
  if (from->node == to->node)
    return Error::invalidArgument("ranks {} and {} are on the same node {} and use no link; choose ranks of two nodes",
                                  link.from, link.to, from->node);
  auto claim = claimLink(job, link, bothWays);
  if (!claim) return claim.error();

  std::vector<TrafficLimit> limits{{*from, *to, slowdown.bitsPerSecond}};
  if (bothWays) limits.emplace_back(*to, *from, slowdown.bitsPerSecond);
  for (const auto& limit : limits)
    if (auto free = limit.mayBeApplied(); !free) return free.error();
  const auto removeAll = [limits] {
    for (const auto& limit : limits) limit.remove();
  };
  auto guardian = Guardian::start({removeAll, {}, claim->get()});
  if (!guardian) return guardian.error();
  double bitsPerSecond = slowdown.bitsPerSecond;
  if (slowdown.iterations != 0) {
    const auto rate = rateFor(*from, *to, slowdown.iterations);
    if (!rate) return rate.error();
    bitsPerSecond = *rate;
    for (auto& limit : limits) limit.setRate(bitsPerSecond);
  }
  Outcome outcome;
  outcome.kind = InjectionKind::slowLink;
  outcome.link = link;
  outcome.bothWays = bothWays;
  outcome.bitsPerSecond = bitsPerSecond;
  outcome.started = momentNow();
  for (const auto& limit : limits)
    if (auto done = limit.apply(); !done) return done.error();
  auto read = [limits](Outcome& now) {  // from -> to; where both ways, to -> from
    if (const auto traffic = limits[0].traffic()) now.there = *traffic;
    if (limits.size() < 2) return;
    if (const auto traffic = limits[1].traffic()) now.back = *traffic;
  };
  return std::make_unique<Injection>(outcome, std::move(*guardian), std::move(*claim), std::move(read));
}

}  // namespace falcon::tools
