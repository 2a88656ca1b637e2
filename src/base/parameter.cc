#include "base/parameter.h"

#include <charconv>
#include <mutex>
#include <set>

#include "base/config_file.h"
#include "base/log.h"
#include "base/net_parameters.h"
#include "base/parameters.h"
#include "base/per_process.h"

extern char** environ;

namespace falcon {
namespace {

template <class T>
std::optional<T> parseNumber(std::string_view text) {
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

std::optional<Nanoseconds> parseDuration(std::string_view text) {
  const auto unitAt = text.find_first_not_of("0123456789.");
  const auto number = parseNumber<double>(text.substr(0, unitAt));
  if (!number) return std::nullopt;
  const auto unit = unitAt == std::string_view::npos ? "s" : text.substr(unitAt);
  const double scale = unit == "ms" ? 1e-3 : unit == "s" ? 1 : unit == "m" ? 60 : unit == "h" ? 3600 : 0;
  const double nanoseconds = *number * scale * 1e9;
  // What does not fit (or is no number) must not reach the cast.
  if (scale == 0 || !(nanoseconds < 9e18)) return std::nullopt;
  return Nanoseconds(static_cast<std::int64_t>(nanoseconds));
}

std::string durationText(Nanoseconds duration) {
  if (duration < 1s) return fmt::format("{}ms", duration.count() / 1'000'000);
  return fmt::format("{}s", duration.count() / 1'000'000'000);
}

/// Whose bad values were noticed.
struct Rejected {
  std::mutex mutex;
  std::set<std::string> names;
};

}  // namespace

std::optional<std::string> ParameterRow::text() const {
  auto value = configured(name_);
  if (value && value->empty()) value.reset();  // `NAME=` in a job script unsets it
  return value;
}

void ParameterRow::reject(std::string_view value) const {
  static constinit PerProcess<Rejected> rejected;
  {
    Rejected& told = rejected.get();
    const std::lock_guard lock(told.mutex);
    if (!told.names.insert(name_).second) return;
  }
  log::notice("{}={} is not valid: use {} ({}); going on with the default {}", name_, value, typeText(), rangeText(),
              defaultText().empty() ? "(empty)" : defaultText());
}

std::int64_t IntegerParameter::value() const {
  const auto given = text();
  if (!given) return fallback_;
  const auto number = parseNumber<std::int64_t>(*given);
  if (number && *number >= low_ && *number <= high_) return *number;
  reject(*given);
  return fallback_;
}
std::string IntegerParameter::defaultText() const {
  return std::to_string(fallback_);
}
std::string IntegerParameter::rangeText() const {
  return fmt::format("{} to {}", low_, high_);
}

double NumberParameter::value() const {
  const auto given = text();
  if (!given) return fallback_;
  const auto number = parseNumber<double>(*given);
  if (number && *number >= low_ && *number <= high_) return *number;
  reject(*given);
  return fallback_;
}
std::string NumberParameter::defaultText() const {
  return fmt::format("{}", fallback_);
}
std::string NumberParameter::rangeText() const {
  return fmt::format("{} to {}", low_, high_);
}

bool SwitchParameter::value() const {
  const auto given = text();
  if (!given) return fallback_;
  if (*given == "1") return true;
  if (*given != "0") reject(*given);
  return *given == "0" ? false : fallback_;
}

Nanoseconds DurationParameter::value() const {
  const auto given = text();
  if (!given) return fallback_;
  const auto duration = parseDuration(*given);
  if (duration && *duration >= low_ && *duration <= high_) return *duration;
  reject(*given);
  return fallback_;
}
std::string DurationParameter::defaultText() const {
  return durationText(fallback_);
}
std::string DurationParameter::valueText() const {
  return durationText(value());
}
std::string DurationParameter::rangeText() const {
  return durationText(low_) + " to " + durationText(high_);
}

std::string TextParameter::value() const {
  return configured(name()).value_or(fallback_);  // an empty text is a value
}

int ChoiceParameter::value() const {
  const auto given = text();
  if (!given) return fallback_;
  for (size_t i = 0; i < words_.size(); ++i)
    if (*given == words_[i]) return static_cast<int>(i);
  reject(*given);
  return fallback_;
}
std::string ChoiceParameter::rangeText() const {
  std::string list;
  for (const char* word : words_) list += (list.empty() ? "" : ", ") + std::string(word);
  return list;
}

std::span<const ParameterRow* const> allParameters() {
  using namespace parameters;
  static const ParameterRow* const rows[] = {&parameters::falcon,
                                             &engine,
                                             &vendorLibrary,
                                             &job,
                                             &validate,
                                             &mitigate,
                                             &deterministic,
                                             &trapBudget,
                                             &trapTimeout,
                                             &trapEntry,
                                             &trapDeath,
                                             &checkpointFolder,
                                             &checkpointKeep,
                                             &restartFile,
                                             &restartExpected,
                                             &restartCode,
                                             &onsetThreshold,
                                             &period,
                                             &nvtx,
                                             &events,
                                             &eventsSize,
                                             &metrics,
                                             &deathTimeout,
                                             &initTimeout,
                                             &checkCalls,
                                             &secret,
                                             &tuningFile,
                                             &linkThrottleFile,
                                             &minChannels,
                                             &maxChannels,
                                             &bufferSize,
                                             &socketInterface,
                                             &socketFamily,
                                             &hostId,
                                             &commId,
                                             &falconCommId,
                                             &shmDisable,
                                             &p2pDisable,
                                             &algorithm,
                                             &protocol,
                                             &threads,
                                             &network,
                                             &netPlugin,
                                             &profilerPlugin,
                                             &ownProfiler,
                                             &chainedProfiler,
                                             &tunerPlugin,
                                             &tunerRules,
                                             &blocking,
                                             &socketThreads,
                                             &socketsPerThread,
                                             &netIo,
                                             &netCongestionControl,
                                             &netPiece,
                                             &ibDevices,
                                             &ibGidIndex,
                                             &ibTimeout,
                                             &ibRetries,
                                             &ibServiceLevel,
                                             &ibTrafficClass,
                                             &netWrap,
                                             &netStateInterval,
                                             &debug,
                                             &debugFile};
  return rows;
}

std::vector<std::string> unknownParameters() {
  std::vector<std::string> unknown;
  for (char** entry = environ; entry && *entry; ++entry) {
    const std::string_view setting(*entry);
    const auto name = setting.substr(0, setting.find('='));
    if (!name.starts_with("NCCL_FALCON_")) continue;
    bool known = false;
    for (const ParameterRow* row : allParameters()) known = known || name == row->name();
    if (!known) unknown.emplace_back(name);
  }
  return unknown;
}

std::string parameterReference() {
  std::string page =
      "# Environment\n\nGenerated from `src/base/parameters.h` and `net_parameters.h` by `falcon parameters "
      "--markdown`; do not edit.\n"
      "Precedence: process environment, then `NCCL_CONF_FILE` or `~/.nccl.conf`, then `/etc/nccl.conf`.\n"
      "A value out of range is said once and the default is used. A `NCCL_FALCON_*` name that is not listed here "
      "warns.\n\n"
      "| Name | Type | Default | Range | Meaning |\n|---|---|---|---|---|\n";
  for (const ParameterRow* row : allParameters())
    page += fmt::format("| `{}` | {} | {} | {} | {} |\n", row->name(), row->typeText(),
                        row->defaultText().empty() ? "(empty)" : "`" + row->defaultText() + "`", row->rangeText(),
                        row->description());
  return page;
}

}  // namespace falcon
