#include "control/restart_time.h"

#include <charconv>
#include <fstream>
#include <iterator>
#include <string_view>

#include "base/format.h"
#include "base/log.h"
#include "base/whole_file.h"

namespace falcon::control {
namespace {

constexpr std::string_view requested = "requested ", took = "took ";

// A job that a person starts again hours later has not needed these hours. [assumed]
constexpr double longest = 3600;

void keep(const std::string& folder, std::string_view what, double value) {
  if (const Status kept = writeWhole(folder + "/restart", fmt::format("{}{:.3f}\n", what, value)); !kept)
    log::info("what a restart takes will not be known: {}", kept.error().message());
}

double numberAfter(std::string_view text, std::string_view what) {
  if (!text.starts_with(what)) return 0;
  text.remove_prefix(what.size());
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() ? value : 0;
}

}  // namespace

void noteRestart(const std::string& folder, double wallTime) {
  if (!folder.empty()) keep(folder, requested, wallTime);
}

double restartSeconds(std::span<const std::string> folders, double wallTime) {
  for (const std::string& folder : folders) {
    if (folder.empty()) continue;
    std::ifstream file(folder + "/restart");
    const std::string text{std::istreambuf_iterator<char>(file), {}};
    const double since = numberAfter(text, requested);
    double known = numberAfter(text, took);
    if (since > 0 && since < wallTime && wallTime - since < longest) known = wallTime - since;
    if (known <= 0) continue;
    if (since > 0 || &folder != &folders.front()) keep(folders.front(), took, known);
    return known;
  }
  return 0;
}

}  // namespace falcon::control
