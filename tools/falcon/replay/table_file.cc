#include "replay/table_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <fstream>
#include <optional>
#include <span>
#include <stdexcept>
#include <string_view>
#include <utility>

namespace falcon::replay {
namespace {

using Names = std::span<const std::string_view>;
constexpr std::string_view iterationNames[] = {"iteration", "iter", "step"};
constexpr std::string_view startNames[] = {"start_iteration", "start"};
constexpr std::string_view endNames[] = {"end_iteration", "end"};
constexpr std::string_view millisecondNames[] = {
    "elapsed_ms", "iteration_ms", "iteration_time_ms", "time_ms", "duration_ms", "milliseconds", "ms"};
constexpr std::string_view secondNames[] = {
    "elapsed_s", "iteration_s", "iteration_time_s", "time_s", "duration_s", "seconds", "s"};

std::string_view blanksBeside(char separator) {
  return separator == '\t' ? " \r" : " \t\r";
}

std::string_view trimmed(std::string_view text, char separator) {
  const auto blank = blanksBeside(separator);
  const auto first = text.find_first_not_of(blank);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(blank) - first + 1);
}

/// What stands most often in the header, outside of quotes: a comma, a semicolon or a tab.
char separatorOf(std::string_view header) {
  std::size_t commas = 0, semicolons = 0, tabs = 0;
  bool quoted = false;
  for (const char c : header) {
    if (c == '"') quoted = !quoted;
    if (quoted) continue;
    commas += c == ',';
    semicolons += c == ';';
    tabs += c == '\t';
  }
  if (semicolons > commas && semicolons >= tabs) return ';';
  return tabs > commas ? '\t' : ',';
}

/// Takes the rest of a cell off `line`, with the separator behind it if there is one.
std::string_view takeToSeparator(std::string_view& line, char separator, bool& more) {
  const auto end = line.find(separator);
  more = end != std::string_view::npos;
  const std::string_view cell = trimmed(line.substr(0, end), separator);
  line.remove_prefix(more ? end + 1 : line.size());
  return cell;
}

/// Takes the first cell off `line`; nothing: it is quoted and does not end here. In quotes there may be separators, and
/// two quotes for one (RFC 4180).
std::optional<std::string> takeCell(std::string_view& line, char separator, bool& more) {
  const auto start = line.find_first_not_of(blanksBeside(separator));
  if (start == std::string_view::npos || line[start] != '"') return std::string(takeToSeparator(line, separator, more));
  line.remove_prefix(start + 1);
  std::string cell;
  for (;;) {
    const auto quote = line.find('"');
    if (quote == std::string_view::npos) return std::nullopt;
    cell += line.substr(0, quote);
    line.remove_prefix(quote + 1);
    if (!line.starts_with('"')) break;
    cell += '"';
    line.remove_prefix(1);
  }
  return cell.append(takeToSeparator(line, separator, more));
}

/// Nothing: the last one is quoted and does not end here.
std::optional<std::vector<std::string>> cellsOf(std::string_view line, char separator) {
  std::vector<std::string> cells;
  for (bool more = true; more;) {
    auto cell = takeCell(line, separator, more);
    if (!cell) return std::nullopt;
    cells.push_back(std::move(*cell));
  }
  return cells;
}

/// A CSV file line by line: header first, then rows of which some columns are read.
class Table {
 public:
  Table(std::istream& text, const std::string& name) : text_(text), name_(name) {
    if (!nextLine()) fail("the file is empty; a header line with the names of the columns was expected");
    std::string_view header = line_;
    if (header.starts_with("\xef\xbb\xbf")) header.remove_prefix(3);
    separator_ = separatorOf(header);
    header_ = wholeCellsOf(header);
  }

  /// The first column with one of these names.
  std::optional<std::size_t> find(Names names) const {
    for (const auto name : names) {
      const auto found = std::find(header_.begin(), header_.end(), name);
      if (found != header_.end()) return static_cast<std::size_t>(found - header_.begin());
    }
    return std::nullopt;
  }

  std::size_t require(Names names) const {
    const auto column = find(names);
    if (!column) failWithout(fmt::format("{}", fmt::join(names, ", ")));
    return *column;
  }

  [[noreturn]] void failWithout(const std::string& names) const {
    fail(fmt::format("no column is called {}; the columns are {}", names, fmt::join(header_, ", ")));
  }

  /// The next row that is not blank; false at the end.
  bool nextRow() {
    if (!nextLine()) return false;
    cells_ = wholeCellsOf(line_);
    return true;
  }

  double number(std::size_t column) const {
    const std::string& text = cell(column);
    double value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc() || end != text.data() + text.size() || !std::isfinite(value))
      fail(fmt::format("{} is '{}', which is not a number", header_[column], text));
    return value;
  }

  double positive(std::size_t column) const {
    const double value = number(column);
    if (!(value > 0)) fail(fmt::format("{} is '{}', which is not above 0", header_[column], cell(column)));
    return value;
  }

  std::int64_t wholeNumber(std::size_t column) const {
    const double value = number(column);
    if (value != std::floor(value) || std::abs(value) > 1e15)
      fail(fmt::format("{} is '{}', which is not a whole number", header_[column], cell(column)));
    return static_cast<std::int64_t>(value);
  }

  const std::string& cell(std::size_t column) const {
    if (column >= cells_.size())
      fail(fmt::format("there are {} values, but {} is column {}", cells_.size(), header_[column], column + 1));
    return cells_[column];
  }

  [[noreturn]] void fail(const std::string& why) const {
    throw std::runtime_error(fmt::format("{}:{}: {}", name_, lineNumber_, why));
  }

 private:
  bool nextLine() {
    while (std::getline(text_, line_)) {
      lineNumber_ += 1 + std::exchange(continued_, 0);
      if (!trimmed(line_, ',').empty()) return true;
    }
    if (text_.bad()) fail("cannot be read");
    return false;
  }

  /// A quoted cell may go on over several lines.
  std::vector<std::string> wholeCellsOf(std::string_view line) {
    std::string whole(line);
    for (std::string more;;) {
      if (auto cells = cellsOf(whole, separator_)) return std::move(*cells);
      do {  // up to a line that may close it: to look at all of it again after every line would take for ever
        if (!std::getline(text_, more)) fail("a quotation mark is not closed before the end of the file");
        whole.append(1, '\n').append(more);
        ++continued_;
      } while (more.find('"') == std::string::npos);
    }
  }

  std::istream& text_;
  const std::string& name_;
  std::string line_;
  char separator_ = ',';
  int lineNumber_ = 0, continued_ = 0;  // where the row begins, and how many lines more it has
  std::vector<std::string> header_, cells_;
};

std::ifstream open(const std::string& path) {
  std::ifstream file(path);
  if (!file) throw std::runtime_error(fmt::format("{} cannot be opened", path));
  return file;
}

}  // namespace

std::vector<Recorded> readTimes(std::istream& text, const std::string& name, const std::string& workColumn) {
  Table table(text, name);
  const auto iterationColumn = table.find(iterationNames);
  const auto milliseconds = table.find(millisecondNames), seconds = table.find(secondNames);
  if (!milliseconds && !seconds)
    table.failWithout(fmt::format("{}, or {}", fmt::join(millisecondNames, ", "), fmt::join(secondNames, ", ")));
  const std::size_t timeColumn = milliseconds ? *milliseconds : *seconds;
  std::optional<std::size_t> work;
  const std::string_view workNames[] = {workColumn};
  if (!workColumn.empty()) work = table.require(workNames);
  double firstWork = 1;
  std::vector<Recorded> rows;
  while (table.nextRow()) {
    Recorded row{static_cast<std::int64_t>(rows.size()) + 1, table.positive(timeColumn)};
    if (iterationColumn) row.iteration = table.wholeNumber(*iterationColumn);
    if (!rows.empty() && row.iteration <= rows.back().iteration)
      table.fail(fmt::format("iteration {} does not come after {}", row.iteration, rows.back().iteration));
    if (!milliseconds) row.milliseconds *= 1000;
    if (work) {
      const double amount = table.positive(*work);
      if (rows.empty()) firstWork = amount;
      row.milliseconds *= firstWork / amount;
    }
    rows.push_back(row);
  }
  return rows;
}

std::vector<Episode> readEpisodes(std::istream& text, const std::string& name) {
  Table table(text, name);
  const std::size_t start = table.require(startNames), end = table.require(endNames);
  std::vector<Episode> episodes;
  while (table.nextRow()) {
    const Episode episode{table.wholeNumber(start), table.wholeNumber(end)};
    if (episode.end <= episode.start)
      table.fail(fmt::format("the episode's end, {}, does not come after its start, {}", episode.end, episode.start));
    episodes.push_back(episode);
  }
  return episodes;
}

std::vector<Recorded> readTimesFile(const std::string& path, const std::string& workColumn) {
  auto file = open(path);
  return readTimes(file, path, workColumn);
}

std::vector<Episode> readEpisodesFile(const std::string& path) {
  auto file = open(path);
  return readEpisodes(file, path);
}

}  // namespace falcon::replay
