#include "jobs/recording_files.h"

#include <cstring>
#include <fstream>
#include <iterator>

#include "instrument/recording.h"

namespace falcon::jobs {
namespace {

Result<std::vector<instrument::RankSnapshot>> readRecording(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  const std::string bytes{std::istreambuf_iterator<char>(file), {}};
  if (!file) return Error::system("{} cannot be read", path);
  std::vector<std::uint64_t> aligned(bytes.size() / sizeof(std::uint64_t) + 1);
  std::memcpy(aligned.data(), bytes.data(), bytes.size());
  return instrument::decodeRecording({reinterpret_cast<const std::byte*>(aligned.data()), bytes.size()}, path);
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
