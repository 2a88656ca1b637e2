// Where a subcommand and the ranks that it starts hand each other files.
#pragma once

#include <fcntl.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <stdexcept>
#include <string>
#include <system_error>

#include "base/owned.h"

namespace falcon::tools {

/// Removes the folders of this user made below, whose owners were killed: those nobody has locked.
inline void removeLeftWorkFolders(const std::filesystem::path& parent) {
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator(parent, ignored)) {
    const std::string name = entry.path().filename();
    if (!name.starts_with("falcon-") || name.find("-temporary-") == std::string::npos) continue;
    const FileDescriptor folder(::open(entry.path().c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    struct stat found {};
    if (!folder || ::fstat(folder.get(), &found) != 0 || found.st_uid != ::geteuid()) continue;
    if (::flock(folder.get(), LOCK_EX | LOCK_NB) == 0) std::filesystem::remove_all(entry.path(), ignored);
  }
}

/// A new folder for temporary files that goes with this object, falcon-<purpose>-temporary-..., or that is kept,
/// falcon-<purpose>-... What killed ones have left goes with the next one.
class WorkFolder {
 public:
  /// Throws std::runtime_error where none can be made.
  explicit WorkFolder(const std::string& purpose, bool keep = false) : keep_(keep) {
    const std::filesystem::path parent = std::filesystem::temp_directory_path();
    removeLeftWorkFolders(parent);
    const std::string pattern = (parent / ("falcon-" + purpose + (keep ? "-XXXXXX" : "-temporary-XXXXXX"))).string();
    do {
      path_ = pattern;
      if (!mkdtemp(path_.data())) throw std::runtime_error("no folder can be made in " + parent.string());
    } while (!keep && !isOurs());
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
  /// Locks it: the lock ends with this process, and with those it forked that start no other program. False: somebody
  /// took it for a left one before it was locked.
  bool isOurs() {
    lock_.reset(::open(path_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    struct stat found {};
    return lock_ && ::flock(lock_.get(), LOCK_EX) == 0 && ::fstat(lock_.get(), &found) == 0 && found.st_nlink > 0;
  }

  bool keep_;
  std::string path_;
  FileDescriptor lock_;
};

}  // namespace falcon::tools
