// A storage in memory that knows what would be left after the power fails: what was synced, and of the rest what the
// test says.
#pragma once

#include <cstring>
#include <map>
#include <optional>
#include <set>

#include "reshape/storage.h"

namespace falcon::reshape {

/// Steps are counted; from step `cutAt` on nothing is done, and everything fails.
class PowerCutStorage final : public Storage {
 public:
  /// What becomes of names that were made or removed, and not synced.
  enum class Names { lost, kept, onlyTheNewestKept };

  void cutAt(std::size_t step) { cutAt_ = step, steps_.clear(); }
  /// What was done since, in words; of a cut one also the step that was not done.
  const std::vector<std::string>& steps() const { return steps_; }
  bool isCut() const { return steps_.size() > cutAt_; }

  /// The machine starts again.
  void restart(Names names) {
    if (names != Names::kept) names_ = durableNames_;
    if (names == Names::onlyTheNewestKept && newest_.second) names_[newest_.first] = newest_.second;
    durableNames_ = names_;
    for (auto& [path, file] : names_) file->content = file->durable;
    cutAt_ = never;
  }

  Status makeFolder(const std::string& path) override { return step("make folder", path); }
  Result<std::unique_ptr<Draft>> create(const std::string& path) override {
    if (const Status done = step("create", path); !done) return done.error();
    auto& file = names_[path];
    file = std::make_shared<File>();
    return std::unique_ptr<Draft>(std::make_unique<FileDraft>(*this, path, file));
  }
  Status rename(const std::string& from, const std::string& to) override {
    if (const Status done = step("rename", from); !done) return done;
    names_[to] = names_.at(from);
    names_.erase(from);
    newest_ = {to, names_[to]};
    return {};
  }
  Status syncFolder(const std::string& path) override {
    if (const Status done = step("sync folder", path); !done) return done;
    const auto inFolder = [&](const auto& entry) { return folder(entry.first) == path; };
    std::erase_if(durableNames_, inFolder);
    newest_ = {};
    for (const auto& entry : names_)
      if (inFolder(entry)) durableNames_.insert(entry);
    return {};
  }
  Result<std::vector<std::string>> list(const std::string& path) override {
    std::set<std::string> names;
    for (const auto& [name, file] : names_)
      if (name.starts_with(path + "/")) {
        const std::string rest = name.substr(path.size() + 1);
        names.insert(rest.substr(0, rest.find('/')));
      }
    return std::vector<std::string>(names.begin(), names.end());
  }
  Result<std::uint64_t> size(const std::string& path) override {
    const auto found = names_.find(path);
    if (found == names_.end()) return Error::system("{} is not there", path);
    return found->second->content.size();
  }
  Status read(const std::string& path, std::uint64_t offset, std::span<std::byte> bytes) override {
    const auto found = names_.find(path);
    if (found == names_.end() || found->second->content.size() < offset + bytes.size())
      return Error::system("{} is cut short", path);
    std::memcpy(bytes.data(), found->second->content.data() + offset, bytes.size());
    return {};
  }
  Status remove(const std::string& path) override {
    if (const Status done = step("remove", path); !done) return done;
    names_.erase(path);
    return {};
  }

  /// Changes one byte of a file, wherever it lies.
  void spoil(const std::string& path, std::size_t at) { names_.at(path)->content.at(at) ^= std::byte{1}; }
  bool has(const std::string& path) const { return names_.contains(path); }

 private:
  static constexpr std::size_t never = ~std::size_t{0};
  struct File {
    std::vector<std::byte> content, durable;
  };
  class FileDraft final : public Draft {
   public:
    FileDraft(PowerCutStorage& of, std::string path, std::shared_ptr<File> file)
        : of_(of), path_(std::move(path)), file_(std::move(file)) {}
    Status write(std::span<const std::byte> bytes) override {
      if (const Status done = of_.step("write", path_); !done) return done;
      file_->content.insert(file_->content.end(), bytes.begin(), bytes.end());
      return {};
    }
    Status sync() override {
      if (const Status done = of_.step("sync", path_); !done) return done;
      file_->durable = file_->content;
      return {};
    }

   private:
    PowerCutStorage& of_;
    const std::string path_;
    const std::shared_ptr<File> file_;
  };

  static std::string folder(const std::string& path) { return path.substr(0, path.rfind('/')); }
  Status step(const char* what, const std::string& path) {
    const bool cut = steps_.size() >= cutAt_;
    if (steps_.size() <= cutAt_) steps_.push_back(std::string(what) + " " + path);
    if (cut) return Error::system("the power is gone");
    return {};
  }

  std::size_t cutAt_ = never;
  std::vector<std::string> steps_;
  std::map<std::string, std::shared_ptr<File>> names_, durableNames_;
  std::pair<std::string, std::shared_ptr<File>> newest_;  ///< of the names that a rename has made, if it was not synced
};

}  // namespace falcon::reshape
