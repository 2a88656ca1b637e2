#include "collectives/algorithm_preference.h"

#include <algorithm>
#include <cctype>
#include <mutex>
#include <set>
#include <string>

#include "base/log.h"
#include "base/parameters.h"
#include "collectives/algorithm_choice.h"

namespace falcon::collectives {
namespace {

constexpr const char* algorithms[] = {"Tree", "Ring", "CollnetDirect", "CollnetChain", "NVLS", "NVLSTree", "PAT"};
constexpr const char* protocols[] = {"LL", "LL128", "Simple"};
constexpr std::uint8_t simpleBit = 1 << 2;

bool equalWords(std::string_view one, std::string_view two) {
  return std::ranges::equal(one, two,
                            [](unsigned char a, unsigned char b) { return std::tolower(a) == std::tolower(b); });
}

/// Cuts the text before the next `separator` off `rest`.
std::string_view cut(std::string_view& rest, char separator) {
  const std::size_t end = std::min(rest.find(separator), rest.size());
  const auto part = rest.substr(0, end);
  rest.remove_prefix(std::min(end + 1, rest.size()));
  return part;
}

std::uint8_t bitOf(std::string_view word, std::span<const char* const> words) {
  for (std::size_t i = 0; i < words.size(); ++i)
    if (equalWords(word, words[i])) return static_cast<std::uint8_t>(1u << i);
  return 0;
}

Result<std::uint8_t> parseList(std::string_view list, std::span<const char* const> words) {
  const bool excluding = list.starts_with('^');
  if (excluding) list.remove_prefix(1);
  std::uint8_t mask = 0;
  while (!list.empty()) {
    const auto word = cut(list, ',');
    const std::uint8_t bit = bitOf(word, words);
    if (bit == 0) return Error::invalidUsage("there is no '{}'", word);
    mask |= bit;
  }
  if (mask == 0) return Error::invalidUsage("a list is empty");
  return excluding ? static_cast<std::uint8_t>(~mask) : mask;
}

bool firstTime(const std::string& text) {
  static std::mutex mutex;
  static auto* told = new std::set<std::string>;
  const std::lock_guard lock(mutex);
  return told->insert(text).second;
}

PreferenceMasks readMasks(const TextParameter& parameter, std::span<const char* const> words) {
  const std::string text = parameter.value();
  const auto masks = parsePreferences(text, words);
  if (masks) return *masks;
  if (firstTime(text))
    log::notice("{}={} is not followed: {}; see docs/environment.md", parameter.name(), text, masks.error().message());
  return {};
}

std::uint8_t availableFor(Operation operation) {
  std::uint8_t available = 0;
  for (const AlgorithmRow& row : algorithmTable())
    if (row.operation == operation) available |= algorithmBit(row.algorithm->name);
  return available;
}

/// The operations that cannot do as preferred.
std::string unfollowed(const PreferenceMasks& masks, bool isProtocol) {
  std::string names;
  for (int i = 0; i < operationCount; ++i) {
    const auto operation = static_cast<Operation>(i);
    const std::uint8_t available = isProtocol ? simpleBit : availableFor(operation);
    if (available == 0 || availableFor(operation) == 0 || (masks[operation] & available) != 0) continue;
    names += (names.empty() ? "" : ", ") + std::string(nameOf(operation));
  }
  return names;
}

void tellOnce(const TextParameter& parameter, const PreferenceMasks& masks, bool isProtocol) {
  if (!log::on(log::Level::info)) return;
  const std::string names = unfollowed(masks, isProtocol);
  if (!names.empty() && firstTime(parameter.name() + names))
    log::info("{}={}: the host engine has none of these for {}; what it has by default is used", parameter.name(),
              parameter.value(), names);
}

}  // namespace

Result<PreferenceMasks> parsePreferences(std::string_view text, std::span<const char* const> words) {
  PreferenceMasks masks;
  bool first = true;
  while (!text.empty()) {
    auto entry = cut(text, ';');
    const bool forAll = entry.find(':') == std::string_view::npos;
    if (forAll && !first) return Error::invalidUsage("'{}' does not say for which operation", entry);
    const auto name = forAll ? std::string_view() : cut(entry, ':');
    const auto list = parseList(entry, words);
    if (!list) return list.error();
    bool known = forAll;
    for (int i = 0; i < operationCount; ++i) {
      if (!forAll && !equalWords(name, nameOf(static_cast<Operation>(i)))) continue;
      masks.of[static_cast<std::size_t>(i)] = *list;
      known = true;
    }
    if (!known) return Error::invalidUsage("there is no operation '{}'", name);
    first = false;
  }
  return masks;
}

std::span<const char* const> algorithmWords() {
  return algorithms;
}

std::uint8_t algorithmBit(std::string_view name) {
  return bitOf(name, algorithms);
}

PreferenceMasks preferencesFromEnvironment() {
  if (parameters::protocol.isSet()) tellOnce(parameters::protocol, readMasks(parameters::protocol, protocols), true);
  if (!parameters::algorithm.isSet()) return {};
  const PreferenceMasks masks = readMasks(parameters::algorithm, algorithms);
  tellOnce(parameters::algorithm, masks, false);
  return masks;
}

PreferenceMasks agreedPreferences(const PreferenceMasks& one, const PreferenceMasks& other) {
  PreferenceMasks both;
  for (std::size_t i = 0; i < both.of.size(); ++i) {
    both.of[i] = one.of[i] & other.of[i];
    if (both.of[i] == 0) both.of[i] = PreferenceMasks::everything;
  }
  return both;
}

}  // namespace falcon::collectives
