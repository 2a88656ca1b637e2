#include "tuner/rules.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <span>

#include "plugin/plugin_names.h"

namespace falcon::tuner {
namespace {

using plugin::sameWithoutCase;

// Their places are the values.
constexpr const char* functions[] = {"Broadcast", "Reduce", "AllGather", "ReduceScatter", "AllReduce"};
constexpr const char* algorithms[] = {"Tree", "Ring", "CollnetDirect", "CollnetChain", "NVLS", "NVLSTree", "PAT"};
constexpr const char* protocols[] = {"LL", "LL128", "Simple"};

std::vector<std::string_view> wordsOf(std::string_view line) {
  line = line.substr(0, line.find('#'));
  std::vector<std::string_view> words;
  while (true) {
    const auto begin = line.find_first_not_of(" \t\r");
    if (begin == std::string_view::npos) return words;
    line.remove_prefix(begin);
    const auto end = std::min(line.find_first_of(" \t\r"), line.size());
    words.push_back(line.substr(0, end));
    line.remove_prefix(end);
  }
}

std::optional<int> placeOf(std::string_view word, std::span<const char* const> words) {
  if (word == "*") return Rule::any;
  for (std::size_t i = 0; i < words.size(); ++i)
    if (sameWithoutCase(word, words[i])) return static_cast<int>(i);
  return std::nullopt;
}

std::optional<std::uint64_t> numberOf(std::string_view text) {
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc()) return std::nullopt;
  const std::string_view unit(end, static_cast<std::size_t>(text.data() + text.size() - end));
  constexpr std::string_view units = "kMG";
  if (unit.empty()) return number;
  const auto power = units.find(unit);
  if (unit.size() != 1 || power == std::string_view::npos) return std::nullopt;
  const unsigned shift = 10 * (static_cast<unsigned>(power) + 1);
  if (number > std::numeric_limits<std::uint64_t>::max() >> shift) return std::nullopt;
  return number << shift;
}

bool takeBytes(std::string_view range, Rule& rule) {
  const auto dash = range.find('-');
  if (dash == std::string_view::npos) return false;
  const auto from = range.substr(0, dash), to = range.substr(dash + 1);
  const auto first = from.empty() ? 0 : numberOf(from);
  const auto last = to.empty() ? std::numeric_limits<std::size_t>::max() : numberOf(to);
  if (!first || !last || *first >= *last) return false;
  rule.fromBytes = *first;
  rule.toBytes = *last;
  return true;
}

bool takeOption(std::string_view word, Rule& rule) {
  const auto sign = word.find('=');
  if (sign == std::string_view::npos) return false;
  const auto name = word.substr(0, sign), value = word.substr(sign + 1);
  if (name == "bytes") return takeBytes(value, rule);
  const auto number = numberOf(value);
  if (!number) return false;
  if (name == "from") rule.fromCall = *number;
  if (name == "ranks") rule.ranks = static_cast<int>(std::min<std::uint64_t>(*number, 1U << 30));
  return name == "from" || name == "ranks";
}

/// Nothing: the words are no rule.
std::optional<Rule> ruleOf(std::span<const std::string_view> words) {
  Rule rule;
  std::size_t used = 0;
  if (words.size() >= 4 && words[0] == "avoid") {
    const auto function = placeOf(words[1], functions), algorithm = placeOf(words[2], algorithms),
               protocol = placeOf(words[3], protocols);
    if (!function || !algorithm || !protocol) return std::nullopt;
    rule.function = *function;
    rule.algorithm = *algorithm;
    rule.protocol = *protocol;
    used = 4;
  } else if (words.size() >= 3 && words[0] == "channels") {
    const auto function = placeOf(words[1], functions);
    const auto count = numberOf(words[2]);
    if (!function || !count || *count < 1 || *count > 64) return std::nullopt;
    rule.function = *function;
    rule.channels = static_cast<int>(*count);
    used = 3;
  } else {
    return std::nullopt;
  }
  for (const std::string_view word : words.subspan(used))
    if (!takeOption(word, rule)) return std::nullopt;
  return rule;
}

bool holds(const Rule& rule, const AskedCall& call) {
  return (rule.function == Rule::any || rule.function == static_cast<int>(call.function)) &&
         rule.fromBytes <= call.bytes && call.bytes < rule.toBytes && rule.fromCall <= call.number &&
         (rule.ranks == Rule::any || rule.ranks == call.ranks);
}

bool avoids(const Rule& rule, int algorithm, int protocol) {
  return rule.channels == 0 && (rule.algorithm == Rule::any || rule.algorithm == algorithm) &&
         (rule.protocol == Rule::any || rule.protocol == protocol);
}

}  // namespace

Result<std::vector<Rule>> parseRules(std::string_view text) {
  std::vector<Rule> rules;
  for (int number = 1; !text.empty(); ++number) {
    const auto end = std::min(text.find('\n'), text.size());
    const auto line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    const auto words = wordsOf(line);
    if (words.empty()) continue;
    const auto rule = ruleOf(words);
    if (!rule)
      return Error::invalidUsage(
          "line {} is no rule: '{}'. It should be 'avoid FUNCTION ALGORITHM PROTOCOL' or 'channels FUNCTION COUNT', "
          "then "
          "bytes=FROM-TO, from=CALL or ranks=COUNT",
          number, line);
    rules.push_back(*rule);
  }
  return rules;
}

void follow(const std::vector<Rule>& rules, const AskedCall& call, float* costs, int algorithms, int protocols,
            int* channels) {
  std::vector<const Rule*> active;
  for (const Rule& rule : rules) {
    if (!holds(rule, call)) continue;
    if (rule.channels > 0)
      *channels = rule.channels;
    else
      active.push_back(&rule);
  }
  const auto avoided = [&](int algorithm, int protocol) {
    return std::any_of(active.begin(), active.end(),
                       [&](const Rule* rule) { return avoids(*rule, algorithm, protocol); });
  };
  bool left = false;
  for (int i = 0; i < algorithms * protocols; ++i)
    left = left || (costs[i] >= 0 && !avoided(i / protocols, i % protocols));
  if (!left) return;
  for (int i = 0; i < algorithms * protocols; ++i)
    if (avoided(i / protocols, i % protocols)) costs[i] = plugin::ignoredCost;
}

}  // namespace falcon::tuner
