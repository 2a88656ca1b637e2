#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <thread>
#include <vector>

#include "base/format.h"
#include "inject/injection.h"
#include "inject/traffic_limit.h"

namespace falcon::tools {
namespace {

constexpr double unlimited = 100e9;
constexpr auto watched = std::chrono::seconds(5);

class LinkInjection final : public Injection {
 public:
  LinkInjection(Outcome outcome, Guardian guardian, std::vector<TrafficLimit> limits)
      : Injection(std::move(outcome), std::move(guardian)), limits_(std::move(limits)) {}

 private:
  void read(Outcome& outcome) override {
    if (const auto traffic = limits_[0].traffic()) outcome.there = *traffic;
    if (limits_.size() < 2) return;
    if (const auto traffic = limits_[1].traffic()) outcome.back = *traffic;
  }

  std::vector<TrafficLimit> limits_;  // from -> to; where both ways, to -> from
};

}  // namespace

namespace {

Status mayBeFactor(double iterations) {
  if (iterations > 1) return {};
  return Error::invalidArgument("--slowdown {}: give how many times as long iterations shall take, more than 1",
                                iterations);
}

// What the pair carried while it was watched must take (iterations - 1) times as long.
Result<double> rateFrom(std::uint64_t bytes, Link link, double iterations) {
  const double seconds = std::chrono::duration<double>(watched).count();
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
  std::this_thread::sleep_for(watched);
  const auto traffic = watch.traffic();
  watch.remove();
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
class ThrottleInjection final : public Injection {
 public:
  ThrottleInjection(Outcome outcome, Guardian guardian, std::string file)
      : Injection(outcome, std::move(guardian)),
        file_(std::move(file)),
        link_(outcome.link),
        opposite_{link_.to, link_.from},
        thereBefore_(throttleTraffic(file_, link_)),
        backBefore_(throttleTraffic(file_, opposite_)) {}

 private:
  void read(Outcome& outcome) override {
    outcome.there = since(thereBefore_, throttleTraffic(file_, link_));
    if (outcome.bothWays) outcome.back = since(backBefore_, throttleTraffic(file_, opposite_));
  }

  const std::string file_;
  const Link link_, opposite_;
  const LinkTraffic thereBefore_, backBefore_;
};

Status writeThrottle(const std::string& path, const std::string& lines) {
  std::ofstream(path + ".new") << lines;
  if (std::rename((path + ".new").c_str(), path.c_str()) != 0)
    return Error::system("{} cannot be written: {}", path, std::strerror(errno));
  return {};
}

Result<double> throttleRateFor(const std::string& throttleFile, Link link, double iterations) {
  if (auto fits = mayBeFactor(iterations); !fits) return fits.error();
  const auto before = throttleTraffic(throttleFile, link);
  std::this_thread::sleep_for(watched);
  return rateFrom(since(before, throttleTraffic(throttleFile, link)).bytes, link, iterations);
}

Result<std::unique_ptr<Injection>> throttleLink(Link link, bool bothWays, const LinkSlowdown& slowdown) {
  double bitsPerSecond = slowdown.bitsPerSecond;
  if (slowdown.iterations != 0) {
    const auto rate = throttleRateFor(slowdown.throttleFile, link, slowdown.iterations);
    if (!rate) return rate.error();
    bitsPerSecond = *rate;
  }
  const auto bytes = static_cast<long long>(bitsPerSecond / 8);
  std::string lines = fmt::format("{} {} {}\n", link.from, link.to, bytes);
  if (bothWays) lines += fmt::format("{} {} {}\n", link.to, link.from, bytes);
  auto guardian = Guardian::start({[path = slowdown.throttleFile] { (void)writeThrottle(path, ""); }, {}});
  if (!guardian) return guardian.error();
  Outcome outcome;
  outcome.kind = InjectionKind::slowLink;
  outcome.link = link;
  outcome.bothWays = bothWays;
  outcome.bitsPerSecond = bitsPerSecond;
  outcome.insideTransport = true;
  outcome.started = momentNow();
  std::unique_ptr<Injection> injection(new ThrottleInjection(outcome, std::move(*guardian), slowdown.throttleFile));
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
  if (!slowdown.throttleFile.empty()) return throttleLink(link, bothWays, slowdown);
  if (from->netNamespace.empty())
    return Error::invalidArgument(
        "the job runs without nodes, so its ranks have no links of their own; start it with --nodes");
  if (from->node == to->node)
    return Error::invalidArgument("ranks {} and {} are on the same node {} and use no link; choose ranks of two nodes",
                                  link.from, link.to, from->node);
  double bitsPerSecond = slowdown.bitsPerSecond;
  if (slowdown.iterations != 0) {
    const auto rate = rateFor(*from, *to, slowdown.iterations);
    if (!rate) return rate.error();
    bitsPerSecond = *rate;
  }
  std::vector<TrafficLimit> limits{{*from, *to, bitsPerSecond}};
  if (bothWays) limits.emplace_back(*to, *from, bitsPerSecond);
  const auto removeAll = [limits] {
    for (const auto& limit : limits) limit.remove();
  };
  auto guardian = Guardian::start({removeAll, {}});
  if (!guardian) return guardian.error();
  Outcome outcome;
  outcome.kind = InjectionKind::slowLink;
  outcome.link = link;
  outcome.bothWays = bothWays;
  outcome.bitsPerSecond = bitsPerSecond;
  outcome.started = momentNow();
  for (const auto& limit : limits)
    if (auto done = limit.apply(); !done) return done.error();
  return std::unique_ptr<Injection>(new LinkInjection(outcome, std::move(*guardian), std::move(limits)));
}

}  // namespace falcon::tools
