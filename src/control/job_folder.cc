#include "control/job_folder.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <sstream>
#include <thread>
#include <utility>
#include <vector>

#include "base/folder_names.h"
#include "base/own_folder.h"
#include "instrument/rank_snapshot.h"

namespace falcon::control {
namespace {

namespace fs = std::filesystem;

constexpr auto keptLongest = std::chrono::hours(24);
constexpr auto surelyKept = std::chrono::minutes(10);
constexpr std::size_t keptJobs = 4;

/// The call logs in a job's folder.
std::vector<std::pair<fs::path, instrument::CallLogView>> logsIn(const fs::path& folder) {
  std::vector<std::pair<fs::path, instrument::CallLogView>> logs;
  const auto names = namesIn(folder);
  if (!names) return logs;
  for (const std::string& name : *names) {
    const fs::path file = folder / name;
    if (file.extension() != ".calls") continue;
    if (auto log = instrument::readCallLog(file, 1)) logs.emplace_back(file, std::move(*log));
  }
  return logs;
}

/// Whether the process with the log's number is the one that wrote it: numbers are used again, above all in containers.
bool isItsWriter(const instrument::CallLogView& log) {
  std::istringstream fields(instrument::statOf(log.pid));
  std::string field;
  for (int i = 0; i < 20; ++i) fields >> field;
  const auto clock = [](clockid_t id) {
    timespec now{};
    ::clock_gettime(id, &now);
    return std::chrono::seconds(now.tv_sec) + Nanoseconds(now.tv_nsec);
  };
  const double started = std::strtod(field.c_str(), nullptr) / static_cast<double>(::sysconf(_SC_CLK_TCK));
  return started <= seconds(log.startTime + clock(CLOCK_BOOTTIME) - clock(CLOCK_MONOTONIC)) + 1;
}

bool isAlive(const fs::path& folder) {
  const auto logs = logsIn(folder);
  return std::any_of(logs.begin(), logs.end(), [](const auto& log) { return instrument::ownerIsAlive(log.second); });
}

/// Flat: there are only files in it.
void removeJob(const fs::path& folder) {
  std::error_code ignored;
  if (const auto names = namesIn(folder))
    for (const std::string& name : *names) fs::remove(folder / name, ignored);
  fs::remove(folder, ignored);
}

}  // namespace

Status makeJobFolder(const std::string& folder) {
  for (const std::string& path : {instrument::jobsFolder(), folder}) {
    if (const auto made = makeOwnFolder(path); !made) return made.error();
  }
  return {};
}

FileDescriptor lockJobFolder(const std::string& folder, Nanoseconds limit) {
  FileDescriptor opened(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW));
  const Clock& clock = SystemClock::instance();
  const Nanoseconds deadline = clock.now() + limit;
  while (opened && ::flock(opened.get(), LOCK_EX | LOCK_NB) != 0) {
    if (clock.now() >= deadline) return {};
    std::this_thread::sleep_for(1ms);
  }
  return opened;
}

void removeDeadRanks(const std::string& folder, const std::string& host) {
  std::error_code ignored;
  for (const auto& [file, log] : logsIn(folder))
    if (log.identity.host == host && !instrument::ownerIsAlive(log)) {
      fs::remove(file, ignored);
      for (const char* extension : {".ranges", ".settings", ".net"})
        fs::remove(fs::path(file).replace_extension(extension), ignored);
    }
}

std::optional<std::int64_t> rivalAt(const std::string& callLog, const std::string& host) {
  const auto log = instrument::readCallLog(callLog, 1);
  if (!log || log->identity.host != host || log->pid == getpid() || log->pid == getppid()) return std::nullopt;
  if (instrument::isGone(instrument::processStateOf(*log)) || !isItsWriter(*log)) return std::nullopt;
  return log->pid;
}

void removeOldJobs() {
  struct Known {
    fs::file_time_type::duration age;
    fs::path folder;
  };
  if (!openOwnFolder(instrument::jobsFolder())) return;  // or others would choose what is removed
  std::vector<Known> old;
  std::size_t kept = 0;
  const auto jobs = namesIn(instrument::jobsFolder());
  if (!jobs) return;
  for (const std::string& name : *jobs) {
    const fs::path folder = fs::path(instrument::jobsFolder()) / name;
    std::error_code problem;
    auto changed = fs::last_write_time(folder, problem);
    if (problem) continue;  // removed meanwhile
    const auto files = namesIn(folder);
    if (files)
      for (const std::string& file : *files) changed = std::max(changed, fs::last_write_time(folder / file, problem));
    const auto age = fs::file_time_type::clock::now() - changed;
    if (age > surelyKept) old.push_back({age, folder});
    if (age <= surelyKept) ++kept;
  }
  std::sort(old.begin(), old.end(), [](const Known& a, const Known& b) { return a.age < b.age; });
  for (const Known& job : old) {
    if ((job.age <= keptLongest && kept < keptJobs) || isAlive(job.folder)) {
      ++kept;
      continue;
    }
    removeJob(job.folder);
  }
}

}  // namespace falcon::control
