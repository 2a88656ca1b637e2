#include "doctor/attach.h"

#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "base/parameters.h"
#include "ending_signals.h"
#include "jobs/running_job.h"
#include "print.h"

namespace falcon::doctor {
namespace {

namespace fs = std::filesystem;

// Something else may be under way in the job, a profiling or a validation of its own.
constexpr Nanoseconds patienceBefore = 20s;

/// Until the file is there. False: it did not come in time, the job has ended, or a signal came.
bool waitForFile(const fs::path& path, const std::string& job, int& signal) {
  const sigset_t signals = tools::endingSignals();
  const Nanoseconds patience = patienceBefore + parameters::trapEntry.value() + parameters::trapTimeout.value();
  const auto end = std::chrono::steady_clock::now() + patience;
  while (!fs::exists(path)) {
    if (std::chrono::steady_clock::now() > end || !jobs::runningJob(job)) return false;
    const timespec betweenLooks{0, 100'000'000};
    signal = std::max(0, ::sigtimedwait(&signals, nullptr, &betweenLooks));
    if (signal > 0) return false;
  }
  return true;
}

/// The job answers, although nobody waits any more: a process of its own takes the answer away when it has come.
void haveItRemoved(const fs::path& path, const std::string& job) {
  if (::fork() != 0) return;
  ::setsid();
  for (const int descriptor : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) ::close(descriptor);  // others read there
  int signal = 0;
  (void)waitForFile(path, job, signal);
  ::unlink(path.c_str());
  ::_exit(0);
}

std::string contentOf(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return std::string(std::istreambuf_iterator<char>(file), {});
}

}  // namespace

std::optional<validate::Examination> examineJob(const std::string& name, int& signal) {
  const auto job = jobs::runningJobOrSay("doctor", name);
  if (!job) return std::nullopt;
  const jobs::RankFile& asked = jobs::anyOf(*job);
  const fs::path path = fs::path(asked.path).replace_extension(".examination");
  std::error_code ignored;
  fs::remove(path, ignored);
  tools::blockEndingSignals();
  if (!jobs::send("doctor", asked, instrument::JobCommand::examine)) return std::nullopt;
  const bool answered = waitForFile(path, name, signal);
  if (signal > 0) {
    haveItRemoved(path, name);
    return std::nullopt;
  }
  const std::string answer = answered ? contentOf(path) : "";
  fs::remove(path, ignored);
  if (!answered) {
    tools::print(stderr, "falcon doctor: job {} did not answer, or has ended; is Falcon off there?\n", name);
    return std::nullopt;
  }
  const auto line = answer.find('\n');
  if (line != 0) {
    tools::print(stderr, "falcon doctor: job {} was not tested: {}\n", name, answer.substr(0, line));
    return std::nullopt;
  }
  auto examination = validate::decodeExamination(std::string_view(answer).substr(1));
  if (!examination) {
    tools::print(stderr, "falcon doctor: {}: {}\n", path.string(), examination.error().message());
    return std::nullopt;
  }
  return std::move(*examination);
}

Measurements measurementsOf(const validate::Examination& examination) {
  Measurements measured;
  const std::size_t ranks = examination.ranks.empty() ? 0 : static_cast<std::size_t>(examination.ranks.back().rank) + 1;
  measured.sites.resize(ranks);
  measured.rounds.emplace_back(ranks);
  for (const validate::ExaminedRank& rank : examination.ranks) {
    const auto index = static_cast<std::size_t>(rank.rank);
    measured.sites[index] = rank.site;
    RankSample& sample = measured.rounds.front()[index];
    sample.gigaflops32 = rank.gigaflops;
    sample.memoryRate = rank.memoryRate;
    sample.evidence = rank.evidence;
  }
  measured.links = examination.links;
  return measured;
}

}  // namespace falcon::doctor
