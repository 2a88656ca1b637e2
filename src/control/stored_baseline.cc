#include "control/stored_baseline.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <map>
#include <optional>

#include "base/format.h"
#include "base/owned.h"
#include "base/system_error.h"
#include "base/whole_file.h"
#include "control/job_attempts.h"
#include "instrument/call_log.h"

namespace falcon::control {
namespace {

constexpr std::string_view firstLine = "falcon-baseline 3";
constexpr std::size_t mostBytes = 16 << 20;

/// The words of one line, and whether all were what they should be.
class Words {
 public:
  explicit Words(std::string_view line) : rest_(line) {}

  std::string_view word() {
    const std::size_t start = std::min(rest_.find_first_not_of(' '), rest_.size());
    rest_.remove_prefix(start);
    const std::string_view word = rest_.substr(0, rest_.find(' '));
    rest_.remove_prefix(word.size());
    return word;
  }
  template <class Number>
  Number number(Number least, Number most) {
    const std::string_view text = word();
    Number value{};
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    ok_ = ok_ && error == std::errc() && end == text.data() + text.size() && value >= least && value <= most;
    return ok_ ? value : least;
  }
  double amount() { return number(0.0, 1e18); }
  bool more() const { return rest_.find_first_not_of(' ') != std::string_view::npos; }
  bool finished() const { return ok_ && !more(); }

 private:
  std::string_view rest_;
  bool ok_ = true;
};

constexpr Rank mostRanks = 1 << 20;

bool readLine(std::string_view line, StoredBaseline& baseline) {
  Words words(line);
  const std::string_view kind = words.word();
  const auto group = [&] {
    return words.number<std::uint32_t>(
        0, baseline.groups.empty() ? 0 : static_cast<std::uint32_t>(baseline.groups.size() - 1));
  };
  if (kind == "job") {
    baseline.wallTime = words.amount();
    baseline.iterationSeconds = words.amount();
    baseline.calls = words.number<std::uint32_t>(0, UINT32_MAX);
    baseline.work = words.amount();
  } else if (kind == "group") {
    std::vector<Rank> members;
    while (words.more() && members.size() < static_cast<std::size_t>(mostRanks))
      members.push_back(words.number<Rank>(-1, mostRanks));
    baseline.groups.push_back(std::move(members));
  } else if (kind == "rank") {
    StoredBaseline::Member member;
    member.rank = words.number<Rank>(-1, mostRanks);
    member.duration = words.amount();
    member.outside = words.amount();
    member.outsidePerMicroBatch = words.amount();
    member.microBatches = words.amount();
    baseline.members.push_back(std::move(member));
  } else if ((kind != "inside" && kind != "transfer") || baseline.members.empty() || baseline.groups.empty()) {
    return false;
  } else if (kind == "inside") {
    StoredBaseline::Inside inside;
    inside.group = group();
    inside.seconds = words.amount();
    baseline.members.back().inside.push_back(inside);
  } else {
    StoredBaseline::Transfer transfer;
    transfer.group = group();
    transfer.peer = words.number<Rank>(0, mostRanks);
    transfer.channel = words.number<std::int32_t>(0, 1 << 20);
    const std::string_view direction = words.word();
    if (direction != "s" && direction != "r") return false;
    transfer.sending = direction == "s";
    transfer.bytes = words.amount();
    transfer.moving = words.amount();
    transfer.waiting = words.amount();
    baseline.members.back().transfers.push_back(transfer);
  }
  return words.finished();
}

/// Which way bytes went is not kept: as if all went round the ring.
TransferSum sumOf(CommunicatorId id, const StoredBaseline::Transfer& transfer, std::uint64_t iterations) {
  const auto times = static_cast<double>(iterations);
  const auto bytes = static_cast<std::uint64_t>(std::min(transfer.bytes, 1e15) * times);
  return {.id = id,
          .peer = transfer.peer,
          .sending = transfer.sending,
          .bytes = bytes,
          .ringBytes = bytes,
          .moving = transfer.moving * times,
          .waiting = transfer.waiting * times,
          .channel = transfer.channel};
}

}  // namespace

StoredBaseline storedFrom(const JobView& job, double iterationSeconds, double work, std::uint32_t calls,
                          double wallTime) {
  StoredBaseline stored{.wallTime = wallTime, .iterationSeconds = iterationSeconds, .work = work, .calls = calls};
  std::map<CommunicatorId, std::uint32_t> groupOf;
  for (const auto& [id, communicator] : job.communicators()) {
    const auto known = std::find(stored.groups.begin(), stored.groups.end(), communicator.jobRanks);
    groupOf[id] = static_cast<std::uint32_t>(known - stored.groups.begin());
    if (known == stored.groups.end()) stored.groups.push_back(communicator.jobRanks);
  }
  for (const auto& [process, member] : job.members()) {
    if (!member.healthy) continue;
    StoredBaseline::Member kept{.rank = member.identity.jobRank,
                                .duration = member.healthy->duration,
                                .outside = member.healthy->outside,
                                .outsidePerMicroBatch = member.healthy->outsidePerMicroBatch,
                                .microBatches = member.healthy->microBatches};
    std::map<std::uint32_t, double> inside;
    for (const auto& [id, seconds] : member.healthy->inLibrary)
      if (const auto group = groupOf.find(id); group != groupOf.end()) inside[group->second] += seconds;
    for (const auto& [group, seconds] : inside) kept.inside.push_back({group, seconds});
    const auto iterations = static_cast<double>(member.healthyTransfers.iterations);
    for (const TransferSum& sum : member.healthyTransfers.sums) {
      const auto group = groupOf.find(sum.id);
      if (iterations <= 0 || group == groupOf.end()) continue;
      kept.transfers.push_back({group->second, sum.peer, sum.channel, sum.sending,
                                static_cast<double>(sum.bytes) / iterations, sum.moving / iterations,
                                sum.waiting / iterations});
    }
    stored.members.push_back(std::move(kept));
  }
  std::sort(stored.members.begin(), stored.members.end(), [](const auto& a, const auto& b) { return a.rank < b.rank; });
  return stored;
}

bool isOfThisJob(const StoredBaseline& stored, const JobView& job, double work, std::uint32_t calls) {
  if ((stored.work > 0) != (work > 0)) return false;
  if (stored.iterationSeconds <= 0 || stored.calls != calls || stored.members.size() != job.members().size())
    return false;
  for (const auto& [process, member] : job.members()) {
    const Rank rank = member.identity.jobRank;
    const auto same =
        std::find_if(stored.members.begin(), stored.members.end(), [&](const auto& each) { return each.rank == rank; });
    if (same == stored.members.end() || !member.healthy) return false;
    if (std::abs(same->microBatches - member.healthy->microBatches) > 1e-6) return false;
  }
  const auto known = [&](const std::vector<Rank>& ranks) {
    return std::find(stored.groups.begin(), stored.groups.end(), ranks) != stored.groups.end();
  };
  return std::all_of(job.communicators().begin(), job.communicators().end(),
                     [&](const auto& each) { return known(each.second.jobRanks); });
}

void useStored(const StoredBaseline& stored, JobView& job) {
  const auto communicatorOf = [&](std::uint32_t group) -> std::optional<CommunicatorId> {
    for (const auto& [id, communicator] : job.communicators())
      if (group < stored.groups.size() && communicator.jobRanks == stored.groups[group]) return id;
    return std::nullopt;
  };
  for (auto& [process, member] : job.members()) {
    const Rank rank = member.identity.jobRank;
    const auto kept =
        std::find_if(stored.members.begin(), stored.members.end(), [&](const auto& each) { return each.rank == rank; });
    if (kept == stored.members.end() || !member.healthy) continue;
    RankMeans& healthy = *member.healthy;
    healthy.duration = kept->duration;
    healthy.outside = kept->outside;
    healthy.outsidePerMicroBatch = kept->outsidePerMicroBatch;
    healthy.inLibrary.clear();
    healthy.ranges.clear();  // not kept: of the slow start
    for (const auto& inside : kept->inside)
      if (const auto id = communicatorOf(inside.group)) healthy.inLibrary[*id] = inside.seconds;
    member.healthyTransfers = {};
    // Sums over as many iterations as keep whole bytes exact enough.
    constexpr std::uint64_t iterations = 1000;
    member.healthyTransfers.iterations = kept->transfers.empty() ? 0 : iterations;
    for (const auto& transfer : kept->transfers)
      if (const auto id = communicatorOf(transfer.group))
        member.healthyTransfers.sums.push_back(sumOf(*id, transfer, iterations));
    member.healthyCalls.clear();  // of the slow start
  }
}

std::string encodeBaseline(const StoredBaseline& baseline) {
  std::string text = fmt::format("{}\njob {:.3f} {:.9g} {} {:.9g}\n", firstLine, baseline.wallTime,
                                 baseline.iterationSeconds, baseline.calls, baseline.work);
  for (const auto& group : baseline.groups) {
    text += "group";
    for (const Rank rank : group) text += fmt::format(" {}", rank);
    text += '\n';
  }
  for (const auto& member : baseline.members) {
    text += fmt::format("rank {} {:.9g} {:.9g} {:.9g} {:.9g}\n", member.rank, member.duration, member.outside,
                        member.outsidePerMicroBatch, member.microBatches);
    for (const auto& inside : member.inside) text += fmt::format("inside {} {:.9g}\n", inside.group, inside.seconds);
    for (const auto& each : member.transfers)
      text += fmt::format("transfer {} {} {} {} {:.9g} {:.9g} {:.9g}\n", each.group, each.peer, each.channel,
                          each.sending ? "s" : "r", each.bytes, each.moving, each.waiting);
  }
  return text + "end\n";
}

Result<StoredBaseline> decodeBaseline(std::string_view text) {
  StoredBaseline baseline;
  int number = 0;
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    if (end == std::string_view::npos) break;
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(end + 1);
    ++number;
    if (number == 1 && line != firstLine)
      return Error::invalidArgument("not a baseline of this version: it does not begin with \"{}\"", firstLine);
    if (number == 1) continue;
    if (line == "end") return baseline;
    if (!readLine(line, baseline)) return Error::invalidArgument("line {} of the baseline cannot be read", number);
  }
  return Error::invalidArgument("the baseline is cut short after line {}", number);
}

Status writeBaseline(const std::string& folder, const StoredBaseline& baseline) {
  return writeWhole(folder + "/baseline", encodeBaseline(baseline));
}

Result<StoredBaseline> readBaseline(const std::string& folder) {
  const std::string path = folder + "/baseline";
  const FileDescriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  if (!file) return Error::system("{} cannot be read: {}", path, reasonOf(errno));
  struct stat facts {};
  if (fstat(file.get(), &facts) != 0 || !S_ISREG(facts.st_mode) || facts.st_uid != getuid() ||
      static_cast<std::size_t>(facts.st_size) > mostBytes)
    return Error::invalidArgument("{} is not a baseline of this user", path);
  std::string text(static_cast<std::size_t>(facts.st_size), '\0');
  std::size_t read = 0;
  while (read < text.size()) {
    const ssize_t now = ::read(file.get(), text.data() + read, text.size() - read);
    if (now < 0 && errno == EINTR) continue;
    if (now <= 0) break;
    read += static_cast<std::size_t>(now);
  }
  text.resize(read);
  return decodeBaseline(text);
}

std::optional<StoredBaseline> earlierBaseline(const std::string& job, double startWallTime) {
  for (const std::string& name : attemptsOf(job))
    if (auto stored = readBaseline(instrument::jobFolder(name)); stored && stored->wallTime < startWallTime)
      return std::move(*stored);
  return std::nullopt;
}

}  // namespace falcon::control
