#include "reshape/checkpoint_format.h"

#include <charconv>
#include <limits>

#include "base/format.h"
#include "reshape/checksum.h"
#include "reshape/registered_state.h"

namespace falcon::reshape {
namespace {

constexpr std::string_view firstLine = "falcon-checkpoint 2", firstLineWithoutRun = "falcon-checkpoint 1";
constexpr std::string_view folderPrefix = "iteration-";

std::string_view takeLine(std::string_view& text) {
  const std::size_t end = text.find('\n');
  const std::string_view line = text.substr(0, end);
  text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  return line;
}

std::string_view takeWord(std::string_view& line) {
  const std::size_t end = line.find(' ');
  const std::string_view word = line.substr(0, end);
  line.remove_prefix(end == std::string_view::npos ? line.size() : end + 1);
  return word;
}

template <class Number>
bool takeNumber(std::string_view& line, Number& number, int base = 10) {
  const std::string_view word = takeWord(line);
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), number, base);
  return error == std::errc() && end == word.data() + word.size();
}

bool readJob(std::string_view line, Manifest& manifest) {
  return takeWord(line) == "job" && takeNumber(line, manifest.iteration) && takeNumber(line, manifest.ranks) &&
         takeNumber(line, manifest.pipelineSize) && takeNumber(line, manifest.tensorSize) && line.empty();
}

bool readRun(std::string_view line, Manifest& manifest) {
  return takeWord(line) == "run" && takeNumber(line, manifest.run, 16) && line.empty();
}

bool readBuffer(std::string_view line, Manifest& manifest) {
  Manifest::Buffer buffer;
  if (takeWord(line) != "buffer" || !takeNumber(line, buffer.bytes) || !takeNumber(line, buffer.checksum, 16))
    return false;
  if (line.empty() || line.size() > RegisteredState::longestName) return false;
  if (buffer.bytes > std::numeric_limits<std::uint64_t>::max() / 2 - manifest.bytes()) return false;
  buffer.name = line;
  manifest.buffers.push_back(std::move(buffer));
  return true;
}

}  // namespace

std::uint64_t Manifest::bytes() const {
  std::uint64_t sum = 0;
  for (const Buffer& buffer : buffers) sum += buffer.bytes;
  return sum;
}

std::string encode(const Manifest& manifest) {
  std::string text = fmt::format("{}\njob {} {} {} {}\nrun {:016x}\n", firstLine, manifest.iteration, manifest.ranks,
                                 manifest.pipelineSize, manifest.tensorSize, manifest.run);
  for (const Manifest::Buffer& buffer : manifest.buffers)
    text += fmt::format("buffer {} {:016x} {}\n", buffer.bytes, buffer.checksum, buffer.name);
  return text + fmt::format("end {:016x}\n", Checksum::of(text));
}

Result<Manifest> decodeManifest(std::string_view text) {
  const std::string_view all = text;
  Manifest manifest;
  const std::string_view version = takeLine(text);
  if (version != firstLine && version != firstLineWithoutRun)
    return Error::invalidArgument("not a checkpoint of this version: it does not begin with \"{}\"", firstLine);
  if (!readJob(takeLine(text), manifest)) return Error::invalidArgument("line 2 of the manifest cannot be read");
  const bool hasRun = version == firstLine;
  if (hasRun && !readRun(takeLine(text), manifest))
    return Error::invalidArgument("line 3 of the manifest cannot be read");
  for (int number = hasRun ? 4 : 3; !text.empty(); ++number) {
    const std::size_t before = all.size() - text.size();
    std::string_view line = takeLine(text);
    if (!line.starts_with("end ")) {
      if (readBuffer(line, manifest)) continue;
      return Error::invalidArgument("line {} of the manifest cannot be read", number);
    }
    takeWord(line);
    std::uint64_t checksum = 0;
    if (!takeNumber(line, checksum, 16) || checksum != Checksum::of(all.substr(0, before)) || !text.empty())
      return Error::invalidArgument("the manifest was changed: its checksum is another one");
    return manifest;
  }
  return Error::invalidArgument("the manifest is cut short");
}

std::string ownPart(const Place& place) {
  return fmt::format("rank-{}", place.roleOrRank());
}

std::string replicatedPart(const Place& place) {
  if (!place.hasLayout) return fmt::format("replica-{}", place.roleOrRank());
  return fmt::format("stage-{}-shard-{}", place.pipelineIndex, place.tensorIndex);
}

bool writesReplicated(const Place& place) {
  if (!place.hasLayout) return true;
  return place.dataIndex == (place.pipelineIndex * place.tensorSize + place.tensorIndex) % place.dataSize;
}

std::string folderOf(const std::string& folder, std::uint64_t iteration) {
  return fmt::format("{}/{}{:012}", folder, folderPrefix, iteration);
}

std::optional<std::uint64_t> iterationOf(std::string_view name) {
  if (!name.starts_with(folderPrefix)) return std::nullopt;
  name.remove_prefix(folderPrefix.size());
  std::uint64_t iteration = 0;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), iteration);
  if (error != std::errc() || end != name.data() + name.size() || name.size() < 12) return std::nullopt;
  return iteration;
}

}  // namespace falcon::reshape
