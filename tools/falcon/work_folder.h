// Where a subcommand and the ranks that it starts hand each other files.
#pragma once

#include <stdlib.h>

#include <filesystem>
#include <stdexcept>
#include <string>
#include <system_error>

namespace falcon::tools {

/// A new folder for temporary files, falcon-<purpose>-..., that goes with this object unless it is to be kept.
class WorkFolder {
 public:
  /// Throws std::runtime_error where none can be made.
  explicit WorkFolder(const std::string& purpose, bool keep = false) : keep_(keep) {
    const std::filesystem::path parent = std::filesystem::temp_directory_path();
    std::string pattern = (parent / ("falcon-" + purpose + "-XXXXXX")).string();
    if (!mkdtemp(pattern.data())) throw std::runtime_error("no folder can be made in " + parent.string());
    path_ = pattern;
  }
  ~WorkFolder() {
    std::error_code ignored;
    if (!keep_) std::filesystem::remove_all(path_, ignored);
  }
  WorkFolder(const WorkFolder&) = delete;
  WorkFolder& operator=(const WorkFolder&) = delete;

  const std::string& path() const { return path_; }
  /// A folder in it, made where it is not there yet.
  std::string sub(const std::string& name) const {
    const std::string folder = path_ + "/" + name;
    std::filesystem::create_directories(folder);
    return folder;
  }

 private:
  bool keep_;
  std::string path_;
};

}  // namespace falcon::tools
