#include "control/unended_job.h"

#include <cstdlib>
#include <filesystem>
#include <system_error>

#include "base/event.h"
#include "base/input_file.h"
#include "report/json_lines.h"

namespace falcon::control {
namespace {

/// What is quoted in a text has its quotes escaped, so this stands nowhere else.
bool isOfKind(std::string_view line, EventKind kind) {
  return line.find(std::string(R"("kind":")") + nameOf(kind) + '"') != line.npos;
}

double wallTimeOf(std::string_view line) {
  constexpr std::string_view key = R"("wall_time_s":)";
  const auto at = line.find(key);
  return at == line.npos ? 0 : std::strtod(std::string(line.substr(at + key.size(), 32)).c_str(), nullptr);
}

}  // namespace

std::optional<bool> tellsOfUnendedJob(std::string_view lines, const std::string& job, double since) {
  while (!lines.empty()) {
    const auto before = lines.find_last_of('\n', lines.size() - 1);
    const std::string_view line = before == lines.npos ? lines : lines.substr(before + 1);
    const bool begins = isOfKind(line, EventKind::jobStarted);
    const bool ends = isOfKind(line, EventKind::jobEnded) || isOfKind(line, EventKind::switchedOff);
    if ((begins || ends) && report::isOfJob(line, job)) return begins && wallTimeOf(line) >= since;
    lines = before == lines.npos ? std::string_view() : lines.substr(0, before);
  }
  return std::nullopt;
}

bool hasUnendedJob(const std::string& path, const std::string& job, double since) {
  for (int age = 0; age <= report::eventFilesKept; ++age) {
    const std::string name = age == 0 ? path : report::rotatedName(path, age);
    std::error_code unknown;
    if (!std::filesystem::is_regular_file(name, unknown)) return false;  // a pipe would be waited for
    const auto lines = readInputFile(name);
    if (!lines) return false;
    if (const auto told = tellsOfUnendedJob(*lines, job, since)) return *told;
  }
  return false;
}

}  // namespace falcon::control
