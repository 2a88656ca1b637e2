#include "doctor/attach.h"

#include <fmt/format.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <thread>

#include "base/parameters.h"
#include "jobs/running_job.h"

namespace falcon::doctor {
namespace {

namespace fs = std::filesystem;

// Something else may be under way in the job, a profiling or a validation of its own.
constexpr Nanoseconds patienceBefore = 20s;

/// The file's content once it is there; nothing: it did not come in time, or the job has ended.
std::optional<std::string> waitForFile(const fs::path& path, const std::string& job) {
  const Nanoseconds patience = patienceBefore + parameters::trapEntry.value() + parameters::trapTimeout.value();
  const auto end = std::chrono::steady_clock::now() + patience;
  while (!fs::exists(path)) {
    if (std::chrono::steady_clock::now() > end || !jobs::runningJob(job)) return std::nullopt;
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  }
  std::ifstream file(path, std::ios::binary);
  return std::string(std::istreambuf_iterator<char>(file), {});
}

}  // namespace

std::optional<validate::Examination> examineJob(const std::string& name) {
  const auto job = jobs::runningJobOrSay("doctor", name);
  if (!job) return std::nullopt;
  const jobs::RankFile& asked = jobs::anyOf(*job);
  const fs::path path = fs::path(asked.path).replace_extension(".examination");
  std::error_code ignored;
  fs::remove(path, ignored);
  if (!jobs::send("doctor", asked, instrument::JobCommand::examine)) return std::nullopt;
  const auto answer = waitForFile(path, name);
  fs::remove(path, ignored);
  if (!answer) {
    fmt::print(stderr, "falcon doctor: job {} did not answer, or has ended; is Falcon off there?\n", name);
    return std::nullopt;
  }
  const auto line = answer->find('\n');
  if (line != 0) {
    fmt::print(stderr, "falcon doctor: job {} was not tested: {}\n", name, answer->substr(0, line));
    return std::nullopt;
  }
  auto examination = validate::decodeExamination(std::string_view(*answer).substr(1));
  if (!examination) {
    fmt::print(stderr, "falcon doctor: {}: {}\n", path.string(), examination.error().message());
    return std::nullopt;
  }
  return std::move(*examination);
}

Measurements measurementsOf(const validate::Examination& examination) {
  Measurements measured;
  const std::size_t ranks = examination.ranks.empty() ? 0 : static_cast<std::size_t>(examination.ranks.back().rank) + 1;
  measured.places.resize(ranks);
  measured.rounds.emplace_back(ranks);
  for (const validate::ExaminedRank& rank : examination.ranks) {
    const auto index = static_cast<std::size_t>(rank.rank);
    measured.places[index] = rank.place;
    RankSample& sample = measured.rounds.front()[index];
    sample.gigaflops32 = rank.gigaflops;
    sample.memoryRate = rank.memoryRate;
    sample.evidence = rank.evidence;
  }
  measured.links = examination.links;
  return measured;
}

}  // namespace falcon::doctor
