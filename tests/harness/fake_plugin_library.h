// A fake profiler or tuner plugin as a library of its own, so that each test has records and faults of its own.
#pragma once

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <map>
#include <string>

namespace falcon::test {

class FakePlugin {
 public:
  using Variables = std::map<std::string, std::string>;

  /// @param kind       "profiler" or "tuner"
  /// @param variables  that it reads when it is loaded
  FakePlugin(const std::string& kind, int version, const Variables& variables = {}) {
    static int number = 0;
    path_ = testing::TempDir() + "libnccl-" + kind + "-" + std::to_string(getpid()) + "-" + std::to_string(number++) +
            ".so";
    std::filesystem::copy_file(FALCON_FAKE_PLUGINS "/libnccl-" + kind + "-fake" + std::to_string(version) + ".so",
                               path_, std::filesystem::copy_options::overwrite_existing);
    for (const auto& [name, value] : variables) setenv(name.c_str(), value.c_str(), 1);
    library_ = dlopen(path_.c_str(), RTLD_NOW | RTLD_LOCAL);
    for (const auto& [name, value] : variables) unsetenv(name.c_str());
    if (!library_) ADD_FAILURE() << dlerror();
  }
  ~FakePlugin() { std::filesystem::remove(path_); }  // the library stays loaded, as plugins do
  FakePlugin(const FakePlugin&) = delete;
  FakePlugin& operator=(const FakePlugin&) = delete;

  /// For NCCL_PROFILER_PLUGIN or NCCL_TUNER_PLUGIN.
  const std::string& path() const { return path_; }
  /// What the function of that name, exported by it, points to: in this process.
  template <class T>
  T& its(const char* function) const {
    return *reinterpret_cast<T* (*)()>(dlsym(library_, function))();
  }

 private:
  std::string path_;
  void* library_ = nullptr;
};

}  // namespace falcon::test
