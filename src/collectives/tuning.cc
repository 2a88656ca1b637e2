#include "collectives/tuning.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <limits>
#include <optional>

#include "base/format.h"

namespace falcon::collectives {
namespace {

constexpr std::size_t noEnd = std::numeric_limits<std::size_t>::max();
constexpr std::size_t columns = 6;
constexpr std::string_view blanks = " \t\r";
/// AllToAll, Gather and Scatter over connections, where no algorithm does it: a message from each rank to each.
constexpr const char* messagesName = "messages";

using Words = std::array<std::string_view, columns>;

/// The words of a line without its comment; nothing if they are more than the columns.
std::optional<Words> wordsOf(std::string_view line) {
  line = line.substr(0, line.find('#'));
  Words words;
  for (std::size_t count = 0;; ++count) {
    const std::size_t begin = line.find_first_not_of(blanks);
    if (begin == std::string_view::npos) return words;
    if (count == columns) return std::nullopt;
    line.remove_prefix(begin);
    words[count] = line.substr(0, line.find_first_of(blanks));
    line.remove_prefix(words[count].size());
  }
}

/// "4096", "4K", "8M", "1G".
std::optional<std::size_t> parseSize(std::string_view word) {
  int shift = 0;
  if (word.ends_with('K')) shift = 10;
  if (word.ends_with('M')) shift = 20;
  if (word.ends_with('G')) shift = 30;
  if (shift) word.remove_suffix(1);
  std::size_t value = 0;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
  if (word.empty() || error != std::errc() || end != word.data() + word.size() || value > noEnd >> 31) return {};
  return value << shift;
}

std::string sizeText(std::size_t bytes) {
  if (bytes == noEnd) return "-";
  for (const auto& [shift, letter] : {std::pair{30, 'G'}, std::pair{20, 'M'}, std::pair{10, 'K'}})
    if (bytes > 0 && bytes % (std::size_t{1} << shift) == 0) return fmt::format("{}{}", bytes >> shift, letter);
  return std::to_string(bytes);
}

std::optional<Operation> findOperation(std::string_view word) {
  for (int i = 0; i < operationCount; ++i)
    if (word == nameOf(static_cast<Operation>(i))) return static_cast<Operation>(i);
  return {};
}

template <class Row>
auto findCandidate(std::span<const Row> rows, Operation operation, std::string_view name) {
  for (const Row& row : rows)
    if (row.operation == operation && row.algorithm && name == row.algorithm->name) return row.algorithm;
  return decltype(rows[0].algorithm)(nullptr);
}

std::string join(const std::vector<std::string>& words) {
  std::string all;
  for (const std::string& word : words) all += (all.empty() ? "" : ", ") + word;
  return all;
}

Result<TuningLine> parseLine(const Words& words) {
  const auto operation = findOperation(words[0]);
  if (!operation) return Error::invalidArgument("there is no operation '{}'; write it as in AllReduce", words[0]);
  std::optional<Extent> extent;
  for (const Extent one : {Extent::node, Extent::network})
    if (words[1] == nameOf(one)) extent = one;
  if (!extent) return Error::invalidArgument("'{}' is no extent; write node or network", words[1]);
  const auto ranks = parseSize(words[2]);
  if (!ranks || *ranks < 2 || *ranks > 1'000'000)
    return Error::invalidArgument("'{}' is no number of ranks; write the fewest, 2 or more", words[2]);
  const auto from = parseSize(words[3]);
  const auto below = words[4] == "-" ? std::optional(noEnd) : parseSize(words[4]);
  if (!from || !below || *from >= *below)
    return Error::invalidArgument("'{} {}' is no range of bytes; write two sizes as in 4K 8M, or - for no end",
                                  words[3], words[4]);
  const auto known = algorithmsFor(*operation, *extent);
  if (std::find(known.begin(), known.end(), words[5]) == known.end())
    return Error::invalidArgument("{} has no algorithm '{}' in a {}; {}", words[0], words[5], words[1],
                                  known.empty() ? "it has no choice, remove the line" : "it has " + join(known));
  return TuningLine{*operation, *extent, static_cast<int>(*ranks), *from, *below, std::string(words[5])};
}

/// A later line scores higher.
void add(Tuning& tuning, const TuningLine& line) {
  const double score = 1 + static_cast<double>(tuning.algorithms.size() + tuning.direct.size());
  const auto row = [&](auto* algorithm) {
    return ChoiceRow<std::remove_const_t<std::remove_pointer_t<decltype(algorithm)>>>{
        line.operation, algorithm, line.fromBytes, line.toBytes, line.fromRanks, score};
  };
  const Algorithm* const algorithm = findCandidate(algorithmTable(), line.operation, line.algorithm);
  if (algorithm || line.algorithm == messagesName) tuning.algorithms.push_back(row(algorithm));
  tuning.direct.push_back(row(findCandidate(directTable(), line.operation, line.algorithm)));
}

}  // namespace

const char* nameOf(Extent extent) {
  return extent == Extent::node ? "node" : "network";
}

std::string format(const TuningLine& line) {
  return fmt::format("{:<13} {:<7} {:>5} {:>8} {:>8}  {}", nameOf(line.operation), nameOf(line.extent), line.fromRanks,
                     sizeText(line.fromBytes), sizeText(line.toBytes), line.algorithm);
}

std::vector<std::string> algorithmsFor(Operation operation, Extent extent) {
  std::vector<std::string> names;
  const auto add = [&](const char* name) {
    if (std::find(names.begin(), names.end(), name) == names.end()) names.emplace_back(name);
  };
  if (extent == Extent::node)
    for (const DirectRow& row : directTable())
      if (row.operation == operation && row.algorithm) add(row.algorithm->name);
  for (const AlgorithmRow& row : algorithmTable())
    if (row.operation == operation) add(row.algorithm ? row.algorithm->name : messagesName);
  if (names.size() == 1 && names[0] == messagesName) names.clear();
  return names;
}

Result<Tuning> parseTuning(std::string_view text, Extent extent) {
  Tuning tuning;
  for (int number = 1; !text.empty(); ++number) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(line.size() + 1, text.size()));
    const auto words = wordsOf(line);
    if (words && (*words)[0].empty()) continue;
    if (!words || (*words)[columns - 1].empty())
      return Error::invalidArgument(
          "line {}: a line is 'operation extent ranks from below algorithm', as in 'AllReduce node 2 0 64K flat'",
          number);
    const auto parsed = parseLine(*words);
    if (!parsed) return Error::invalidArgument("line {}: {}", number, parsed.error().message());
    if (parsed->extent == extent) add(tuning, *parsed);
  }
  return tuning;
}

}  // namespace falcon::collectives
