#include "injections/results_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <sstream>
#include <stdexcept>

#include "demo/child_process.h"
#include "json_text.h"

namespace falcon::injections {

using nlohmann::json;

namespace {

// Two at once would mix their lines.
FileDescriptor lockedFile(const std::string& path) {
  FileDescriptor file(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644));
  if (!file) throw std::runtime_error(fmt::format("{} cannot be opened: {}", path, std::strerror(errno)));
  if (::flock(file.get(), LOCK_EX | LOCK_NB) == 0) return file;
  throw std::runtime_error(
      errno == EWOULDBLOCK
          ? fmt::format("another `falcon injections` keeps its results in {}: wait for its end, or choose another file",
                        path)
          : fmt::format("{} cannot be locked: {}", path, std::strerror(errno)));
}

}  // namespace

ResultsFile::ResultsFile(std::string path, std::uint64_t seed) : path_(std::move(path)), lock_(lockedFile(path_)) {
  const std::string text = demo::readFile(path_);
  const std::size_t whole = text.rfind('\n') + 1;  // a line that was cut short is done again
  std::istringstream lines(text.substr(0, whole));
  const json head = {{"injections_of_seed", seed}};
  std::string line;
  if (tools::jsonText(head).starts_with(text)) {  // nothing yet, or the first line was cut short
    std::ofstream emptied(path_, std::ios::trunc);
    emptied.close();
    append(tools::jsonText(head));
    return;
  }
  if (!std::getline(lines, line) ||
      !(json::parse(line, nullptr, false) == head))  // what is no JSON is neither equal nor unequal
    throw std::runtime_error(fmt::format("{} is no result of seed {}: choose another file, or remove it", path_, seed));
  std::size_t kept = line.size() + 1;
  try {
    while (std::getline(lines, line)) {
      rows_.push_back(rowFrom(json::parse(line)));
      kept += line.size() + 1;
    }
  } catch (const json::exception&) {
    throw std::runtime_error(fmt::format("{} holds something else after {} bytes: remove it", path_, kept));
  }
  if (whole != text.size()) {
    std::ofstream(path_, std::ios::trunc) << text.substr(0, whole);
  }
}

void ResultsFile::add(const Row& row) {
  append(tools::jsonText(toJson(row)));
  rows_.push_back(row);
}

void ResultsFile::append(const std::string& line) const {
  std::ofstream file(path_, std::ios::app);
  if (!(file << line << '\n' << std::flush)) throw std::runtime_error(path_ + " cannot be written");
}

}  // namespace falcon::injections
