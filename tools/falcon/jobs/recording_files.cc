#include "jobs/recording_files.h"

#include <fmt/format.h>

#include <cstring>
#include <iterator>

#include "base/input_file.h"
#include "instrument/recording.h"
#include "print.h"

namespace falcon::jobs {
namespace {

Result<std::vector<instrument::RankSnapshot>> readRecording(const std::string& path) {
  const auto bytes = readInputFile(path);
  if (!bytes) return bytes.error();
  std::vector<std::uint64_t> aligned(bytes->size() / sizeof(std::uint64_t) + 1);
  std::memcpy(aligned.data(), bytes->data(), bytes->size());
  auto recording =
      instrument::decodeRecording({reinterpret_cast<const std::byte*>(aligned.data()), bytes->size()}, path);
  if (!recording) return recording.error();
  if (!recording->lost.empty()) tools::print(stderr, "falcon: {}\n", recording->lost);
  return std::move(recording->ranks);
}

}  // namespace

Result<std::vector<instrument::RankSnapshot>> readRecordings(const std::vector<std::string>& paths) {
  std::vector<instrument::RankSnapshot> ranks;
  for (const std::string& path : paths) {
    auto more = readRecording(path);
    if (!more) return more.error();
    ranks.insert(ranks.end(), std::make_move_iterator(more->begin()), std::make_move_iterator(more->end()));
  }
  return ranks;
}

}  // namespace falcon::jobs
