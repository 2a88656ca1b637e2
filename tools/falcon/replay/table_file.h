// Reads the CSV files of recorded iteration times and of labelled episodes.
#pragma once

#include <cstdint>
#include <istream>
#include <string>
#include <vector>

namespace falcon::replay {

/// One recorded iteration.
struct Recorded {
  std::int64_t iteration;
  double milliseconds;
};

/// A labelled fail-slow: slow from iteration `start` until before `end`.
struct Episode {
  std::int64_t start, end;
};

/// Iteration times from CSV with a header line; commas, semicolons or tabs separate. Columns are found by name, others
/// are ignored:
/// - `iteration` (or iter, step): whole numbers that rise; where there is none, rows count from 1.
/// - `elapsed_ms` (or iteration_ms, iteration_time_ms, time_ms, duration_ms, milliseconds, ms), or in seconds
///   `elapsed_s` (or iteration_s, iteration_time_s, time_s, duration_s, seconds, s): above 0.
/// @param name        of the file, for errors
/// @param workColumn  where each iteration's work stands (tokens, say): times become those for the first iteration's
///                    work. Empty: all iterations do the same work.
/// Case and blanks around names do not matter. Of several times the first in this list is read: milliseconds first.
/// Lines that begin with # are comments. Rows in which one of these columns is blank, NaN or infinite, or whose time is
/// beyond a double, are left out, with one warning on stderr; they count as rows.
/// Throws std::runtime_error that names the file, the line and the value.
std::vector<Recorded> readTimes(std::istream& text, const std::string& name, const std::string& workColumn = {});

/// Episodes from CSV with a header line: `start_iteration` (or start) and `end_iteration` (or end), whole numbers,
/// start < end; in the file's order. Throws as readTimes does.
std::vector<Episode> readEpisodes(std::istream& text, const std::string& name);

/// The same from files ("-": standard input), whole as readInputFile reads them; its errors are thrown too.
std::vector<Recorded> readTimesFile(const std::string& path, const std::string& workColumn = {});
std::vector<Episode> readEpisodesFile(const std::string& path);

}  // namespace falcon::replay
