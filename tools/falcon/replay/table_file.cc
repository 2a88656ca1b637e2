#include "replay/table_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>
#include <span>
#include <sstream>
#include <stdexcept>
#include <string_view>
#include <utility>

#include "base/input_file.h"

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

std::string lowered(std::string_view text) {
  std::string lower(text);
  for (char& c : lower)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return lower;
}

/// As a column's name is compared: without blanks around it, whatever its case.
std::string nameOf(std::string_view cell) {
  return lowered(trimmed(cell, ','));
}

/// A terminal obeys control bytes.
std::string printable(std::string_view text) {
  std::string shown;
  for (const char c : text)
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f)
      shown += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
    else
      shown += c;
  return shown;
}

/// What a program writes where it has measured nothing.
bool isMissing(std::string_view cell) {
  std::string text = lowered(cell);
  if (text.starts_with('+') || text.starts_with('-')) text.erase(0, 1);
  return cell.empty() || text == "nan" || text == "inf" || text == "infinity";
}

/// A CSV file line by line: header first, then rows of which some columns are read.
class Table {
 public:
  Table(std::istream& text, const std::string& name) : text_(text), name_(name) {
    if (!nextLine())
      throw std::runtime_error(
          fmt::format("{} is empty; a header line with the names of the columns was expected", printable(name_)));
    separator_ = separatorOf(line_);
    readCells();
    header_ = cells_;
  }

  /// The column with the first of these names that there is.
  std::optional<std::size_t> find(Names names) const {
    for (const auto name : names)
      for (std::size_t column = 0; column < header_.size(); ++column)
        if (nameOf(header_[column]) == nameOf(name)) return column;
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
    readCells();
    return true;
  }

  /// Counts the row as one without a value, for tellSkipped().
  void skip() {
    if (skipped_++ == 0) firstSkipped_ = lineNumber_;
  }

  void tellSkipped() const {
    if (skipped_ > 0)
      fmt::print(stderr, "falcon: {}: {} rows without a finite value are left out, the first in line {}\n",
                 printable(name_), skipped_, firstSkipped_);
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
    throw std::runtime_error(printable(fmt::format("{}:{}: {}", name_, lineNumber_, why)));
  }

 private:
  bool nextLine() {
    while (std::getline(text_, line_)) {
      lineNumber_ += 1 + std::exchange(continued_, 0);
      if (std::exchange(first_, false) && line_.starts_with("\xef\xbb\xbf")) line_.erase(0, 3);
      if (!trimmed(line_, ',').empty() && !line_.starts_with('#')) return true;
    }
    if (text_.bad()) fail("cannot be read");
    return false;
  }

  /// Of the line, and of those behind it over which a quoted cell goes on. Every byte is looked at once.
  void readCells() {
    cells_.clear();
    std::string_view line = line_;
    for (bool more = true; more;) cells_.push_back(takeCell(line, more));
  }

  /// Takes the first cell off `line`. In quotes there may be separators, line ends, and two quotes for one (RFC 4180).
  std::string takeCell(std::string_view& line, bool& more) {
    const auto start = line.find_first_not_of(blanksBeside(separator_));
    if (start == std::string_view::npos || line[start] != '"')
      return std::string(takeToSeparator(line, separator_, more));
    line.remove_prefix(start + 1);
    std::string cell;
    for (;;) {
      const auto quote = line.find('"');
      cell += line.substr(0, quote);
      if (quote == std::string_view::npos) {
        if (!std::getline(text_, line_)) fail("a quotation mark is not closed before the end of the file");
        ++continued_;
        line = line_;
        cell += '\n';
        continue;
      }
      line.remove_prefix(quote + 1);
      if (!line.starts_with('"')) break;
      cell += '"';
      line.remove_prefix(1);
    }
    return cell.append(takeToSeparator(line, separator_, more));
  }

  std::istream& text_;
  const std::string& name_;
  std::string line_;
  char separator_ = ',';
  int lineNumber_ = 0, continued_ = 0;  // where the row begins, and how many lines more it has
  std::vector<std::string> header_, cells_;
  bool first_ = true;
  int skipped_ = 0, firstSkipped_ = 0;
};

std::istringstream open(const std::string& path) {
  auto text = path == "-" ? readStandardInput() : readInputFile(path);
  if (!text) throw std::runtime_error(printable(text.error().message()));
  return std::istringstream(std::move(*text));
}

std::string shownName(const std::string& path) {
  return path == "-" ? "standard input" : path;
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
  double firstWork = 0;
  std::vector<Recorded> rows;
  for (std::int64_t number = 1; table.nextRow(); ++number) {
    // Rows that are left out are counted, so that labels still mean the others.
    const auto missing = [&](const std::optional<std::size_t>& column) {
      return column && isMissing(table.cell(*column));
    };
    if (missing(timeColumn) || missing(iterationColumn) || missing(work)) {
      table.skip();
      continue;
    }
    Recorded row{number, table.positive(timeColumn)};
    if (iterationColumn) row.iteration = table.wholeNumber(*iterationColumn);
    if (!rows.empty() && row.iteration <= rows.back().iteration)
      table.fail(fmt::format("iteration {} does not come after {}", row.iteration, rows.back().iteration));
    if (!milliseconds) row.milliseconds *= 1000;
    const double amount = work ? table.positive(*work) : 1;
    const double reference = firstWork > 0 ? firstWork : amount;
    row.milliseconds *= reference / amount;
    if (!std::isfinite(row.milliseconds) || !(row.milliseconds > 0)) {
      table.skip();
      continue;
    }
    firstWork = reference;
    rows.push_back(row);
  }
  table.tellSkipped();
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
  return readTimes(file, shownName(path), workColumn);
}

std::vector<Episode> readEpisodesFile(const std::string& path) {
  auto file = open(path);
  return readEpisodes(file, shownName(path));
}

}  // namespace falcon::replay
