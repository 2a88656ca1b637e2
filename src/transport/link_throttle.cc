#include "transport/link_throttle.h"

#include <sys/stat.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <map>
#include <sstream>

#include "base/format.h"
#include "base/parameters.h"
#include "base/per_process.h"
#include "base/whole_file.h"

namespace falcon::transport {
namespace {

constexpr Nanoseconds lookAgain = 100ms;
// Small enough that a slow link is slow within one message, large enough not to send single bytes.
constexpr double leastBurst = 8192;
constexpr double burstSeconds = 0.01;
constexpr std::size_t leastSend = 4096;

struct Registry {
  std::mutex mutex;
  std::map<Link, std::weak_ptr<LinkThrottle>> throttles;
};

constinit PerProcess<Registry> registry;

}  // namespace

std::optional<double> throttledRate(std::string_view text, const Link& link) {
  std::optional<double> rate;
  std::istringstream lines{std::string(text)};
  for (std::string line; std::getline(lines, line);) {
    std::istringstream fields(line.substr(0, line.find('#')));
    Link named;
    double bytesPerSecond = 0;
    if (fields >> named.from >> named.to >> bytesPerSecond && named == link)
      rate = bytesPerSecond > 0 ? std::optional(bytesPerSecond) : std::nullopt;
  }
  return rate;
}

std::string linkCountsFile(const std::string& throttleFile, const Link& link) {
  return fmt::format("{}.{}-{}", throttleFile, link.from, link.to);
}

LinkThrottle::LinkThrottle(std::string file, Link link, const Clock& clock)
    : file_(std::move(file)), link_(link), clock_(clock) {}

void LinkThrottle::readFileAgain(Nanoseconds now) {
  if (looked_ && now - *looked_ < lookAgain) return;
  looked_ = now;
  writeCounts();
  struct stat status {};
  if (stat(file_.c_str(), &status) != 0) {
    rate_.reset();
    length_ = -1;
    return;
  }
  if (status.st_mtim.tv_sec == modified_.tv_sec && status.st_mtim.tv_nsec == modified_.tv_nsec &&
      status.st_size == length_ && status.st_ino == inode_)
    return;
  modified_ = status.st_mtim;
  length_ = status.st_size;
  inode_ = status.st_ino;
  std::ifstream stream(file_);
  rate_ = throttledRate(std::string(std::istreambuf_iterator<char>(stream), {}), link_);
  tokens_ = 0;
  refilled_ = now;
}

// In one step: readers see all of it or the old one.
void LinkThrottle::writeCounts() const {
  const std::string path = linkCountsFile(file_, link_);
  // What cannot be written is missed by `falcon inject` alone, which says so.
  static_cast<void>(writeWhole(path, fmt::format("{} {}\n", counts_.bytes, counts_.held), forAllToRead));
}

std::size_t LinkThrottle::take(std::size_t wanted) {
  const std::lock_guard lock(mutex_);
  const auto now = clock_.now();
  readFileAgain(now);
  if (!rate_) {
    counts_.bytes += wanted;
    return wanted;
  }
  tokens_ = std::min(tokens_ + *rate_ * seconds(now - refilled_), std::max(leastBurst, *rate_ * burstSeconds));
  refilled_ = now;
  if (tokens_ < static_cast<double>(std::min(wanted, leastSend))) {
    ++counts_.held;
    return 0;
  }
  const auto granted = std::min(wanted, static_cast<std::size_t>(tokens_));
  tokens_ -= static_cast<double>(granted);
  counts_.bytes += granted;
  return granted;
}

void LinkThrottle::giveBack(std::size_t bytes) {
  const std::lock_guard lock(mutex_);
  counts_.bytes -= bytes;
  if (rate_) tokens_ += static_cast<double>(bytes);
}

std::shared_ptr<LinkThrottle> linkThrottle(const Link& link) {
  const std::string file = parameters::linkThrottleFile.value();
  if (file.empty()) return nullptr;
  Registry& all = registry.get();
  const std::lock_guard lock(all.mutex);
  auto& known = all.throttles[link];
  auto throttle = known.lock();
  if (!throttle) known = throttle = std::make_shared<LinkThrottle>(file, link, SystemClock::instance());
  return throttle;
}

}  // namespace falcon::transport
