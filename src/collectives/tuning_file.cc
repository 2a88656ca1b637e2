#include <filesystem>
#include <fstream>

#include "base/first_time.h"
#include "base/log.h"
#include "base/parameters.h"
#include "collectives/tuning.h"

namespace falcon::collectives {
namespace {

/// Every rank gets the text at every init: a larger one is not a tuning file.
constexpr std::size_t mostBytes = 64 << 10;

Result<std::string> readFile(const std::string& path) {
  std::error_code unknown;
  // Anything else may keep its reader waiting.
  if (std::filesystem::exists(path, unknown) && !std::filesystem::is_regular_file(path, unknown) &&
      !std::filesystem::is_character_file(path, unknown))
    return Error::invalidArgument("it is no file");
  std::ifstream file(path, std::ios::binary);
  std::string text(mostBytes + 1, '\0');
  if (!file || (!file.read(text.data(), static_cast<std::streamsize>(text.size())) && !file.eof()))
    return Error::invalidArgument("it cannot be read");
  text.resize(static_cast<std::size_t>(file.gcount()));
  if (text.size() > mostBytes) return Error::invalidArgument("it has more than {} bytes", mostBytes);
  return text;
}

/// Both places are read, so that an error shows wherever the first communicator is.
Result<std::string> readValid(const std::string& path) {
  auto text = readFile(path);
  if (!text) return text.error();
  const auto tuning = parseTuning(*text, Extent::node);
  if (!tuning) return tuning.error();
  return text;
}

}  // namespace

std::string tuningTextFromEnvironment() {
  const std::string path = parameters::tuningFile.value();
  if (path.empty()) return {};
  auto text = readValid(path);
  if (text) return std::move(*text);
  if (firstTime(parameters::tuningFile.name() + path))
    log::notice(
        "NCCL_FALCON_TUNING_FILE={}: {}. The built-in algorithms are used; correct the file, or write a new one with "
        "falcon tune -o {}",
        path, text.error().message(), path);
  return {};
}

}  // namespace falcon::collectives
