// The file system as checkpoints need it: a seam, so that every step can be made to fail or to be the last one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"

namespace falcon::reshape {

/// Thread-safe. Every function names the path in its error.
class Storage {
 public:
  /// A file in the making. Destruction closes it; what was not synced may be lost.
  class Draft {
   public:
    virtual ~Draft() = default;
    virtual Status write(std::span<const std::byte> bytes) = 0;
    /// What was written survives the machine from now on.
    virtual Status sync() = 0;
  };

  virtual ~Storage() = default;

  /// With the folders around it; it may be there.
  virtual Status makeFolder(const std::string& path) = 0;
  /// An empty file for this user, in the place of whatever file has the name.
  virtual Result<std::unique_ptr<Draft>> create(const std::string& path) = 0;
  virtual Status rename(const std::string& from, const std::string& to) = 0;
  /// The names in the folder survive the machine from now on.
  virtual Status syncFolder(const std::string& path) = 0;
  /// Names in the folder, in any order; none where it is not there.
  virtual Result<std::vector<std::string>> list(const std::string& path) = 0;
  virtual Result<std::uint64_t> size(const std::string& path) = 0;
  /// All of `bytes`, from `offset` on. Errors: the file is shorter.
  virtual Status read(const std::string& path, std::uint64_t offset, std::span<std::byte> bytes) = 0;
  /// A file, or a folder that is empty.
  virtual Status remove(const std::string& path) = 0;
};

/// The machine's own. Lives as long as the process.
Storage& fileStorage();

}  // namespace falcon::reshape
