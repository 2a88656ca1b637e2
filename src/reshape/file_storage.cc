#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <filesystem>

#include "base/folder_names.h"
#include "base/owned.h"
#include "base/system_error.h"
#include "reshape/storage.h"

namespace falcon::reshape {
namespace {

namespace fs = std::filesystem;

class FileDraft final : public Storage::Draft {
 public:
  FileDraft(FileDescriptor file, std::string path) : file_(std::move(file)), path_(std::move(path)) {}

  Status write(std::span<const std::byte> bytes) override {
    while (!bytes.empty()) {
      const ssize_t now = ::write(file_.get(), bytes.data(), bytes.size());
      if (now < 0 && errno == EINTR) continue;
      if (now <= 0) return Error::system("{} cannot be written: {}", path_, reasonOf(now < 0 ? errno : ENOSPC));
      bytes = bytes.subspan(static_cast<std::size_t>(now));
    }
    return {};
  }

  Status sync() override {
    if (::fsync(file_.get()) == 0) return {};
    return Error::system("{} cannot be written to the storage: {}", path_, reasonOf(errno));
  }

 private:
  const FileDescriptor file_;
  const std::string path_;
};

class FileStorage final : public Storage {
 public:
  Status makeFolder(const std::string& path) override {
    std::error_code problem;
    fs::create_directories(path, problem);
    if (!problem) return {};
    return Error::system("the folder {} cannot be made: {}", path, problem.message());
  }

  Result<std::unique_ptr<Draft>> create(const std::string& path) override {
    constexpr int flags = O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW;
    FileDescriptor file = newDescriptor(::open(path.c_str(), flags, 0600));
    if (!file) return Error::system("{} cannot be written: {}", path, reasonOf(errno));
    return std::unique_ptr<Draft>(std::make_unique<FileDraft>(std::move(file), path));
  }

  Status rename(const std::string& from, const std::string& to) override {
    if (std::rename(from.c_str(), to.c_str()) == 0) return {};
    return Error::system("{} cannot be renamed to {}: {}", from, to, reasonOf(errno));
  }

  Status syncFolder(const std::string& path) override {
    const FileDescriptor folder = newDescriptor(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (folder && ::fsync(folder.get()) == 0) return {};
    return Error::system("the folder {} cannot be written to the storage: {}", path, reasonOf(errno));
  }

  Result<std::vector<std::string>> list(const std::string& path) override {
    if (::access(path.c_str(), F_OK) != 0 && errno == ENOENT) return std::vector<std::string>();
    return namesIn(path);
  }

  Result<std::uint64_t> size(const std::string& path) override {
    struct stat facts {};
    if (::stat(path.c_str(), &facts) != 0) return Error::system("{} cannot be read: {}", path, reasonOf(errno));
    if (!S_ISREG(facts.st_mode)) return Error::system("{} is no file", path);
    return static_cast<std::uint64_t>(facts.st_size);
  }

  Status read(const std::string& path, std::uint64_t offset, std::span<std::byte> bytes) override {
    const FileDescriptor file = newDescriptor(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
    if (!file) return Error::system("{} cannot be read: {}", path, reasonOf(errno));
    while (!bytes.empty()) {
      const ssize_t now = ::pread(file.get(), bytes.data(), bytes.size(), static_cast<off_t>(offset));
      if (now < 0 && errno == EINTR) continue;
      if (now < 0) return Error::system("{} cannot be read: {}", path, reasonOf(errno));
      if (now == 0) return Error::system("{} is cut short: it ends after {} bytes", path, offset);
      offset += static_cast<std::uint64_t>(now);
      bytes = bytes.subspan(static_cast<std::size_t>(now));
    }
    return {};
  }

  Status remove(const std::string& path) override {
    if (std::remove(path.c_str()) == 0 || errno == ENOENT) return {};
    return Error::system("{} cannot be removed: {}", path, reasonOf(errno));
  }
};

}  // namespace

Storage& fileStorage() {
  // Never destroyed: a thread may still be writing when the process ends.
  static FileStorage& storage = *new FileStorage;
  return storage;
}

}  // namespace falcon::reshape
