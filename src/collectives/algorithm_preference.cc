#include "collectives/algorithm_preference.h"

#include <algorithm>
#include <cctype>

namespace falcon::collectives {
namespace {

constexpr const char* algorithms[] = {"Tree", "Ring", "CollnetDirect", "CollnetChain", "NVLS", "NVLSTree", "PAT"};
constexpr const char* protocols[] = {"LL", "LL128", "Simple"};

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
std::span<const char* const> protocolWords() {
  return protocols;
}

std::uint8_t algorithmBit(std::string_view name) {
  return bitOf(name, algorithms);
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
