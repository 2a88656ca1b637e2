#include "instrument/events_path.h"

#include <climits>
#include <filesystem>
#include <fstream>

#include "base/whole_file.h"

namespace falcon::instrument {
namespace {

namespace fs = std::filesystem;

std::string noteIn(const std::string& jobFolder) {
  return jobFolder + "/events.path";
}

}  // namespace

std::string eventsPath(const std::string& jobFolder) {
  std::string path(PATH_MAX, '\0');
  std::ifstream note(noteIn(jobFolder), std::ios::binary);
  note.read(path.data(), PATH_MAX);
  path.resize(static_cast<std::size_t>(note.gcount()));
  return path.empty() ? jobFolder + "/events.jsonl" : path;
}

Status noteEventsPath(const std::string& jobFolder, const std::string& chosen) {
  std::error_code problem;
  if (!chosen.empty()) {
    const fs::path absolute = fs::absolute(chosen, problem);
    return problem ? Error::system("{} has no absolute path: {}", chosen, problem.message())
                   : writeWhole(noteIn(jobFolder), absolute.string());
  }
  fs::remove(noteIn(jobFolder), problem);
  return problem ? Error::system("{} cannot be removed: {}", noteIn(jobFolder), problem.message()) : Status();
}

}  // namespace falcon::instrument
