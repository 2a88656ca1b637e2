// A fake net plugin (fake_net.cc) as a library of its own, so that each test has counts and faults of its own.
#pragma once

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <string>

#include "harness/fake_net.h"

namespace falcon::test {

class FakeNet {
 public:
  /// @param which  a version, or "-two": one library with versions 6 and 11
  /// @param fault  what is wrong with it; "": nothing
  /// @param name   as it calls itself; "": Fake
  explicit FakeNet(const std::string& which, const std::string& fault = "", const std::string& name = "") {
    static int number = 0;
    path_ = testing::TempDir() + "libnccl-net-" + std::to_string(getpid()) + "-" + std::to_string(number++) + ".so";
    std::filesystem::copy_file(FALCON_FAKE_NETS "/libnccl-net-fake" + which + ".so", path_,
                               std::filesystem::copy_options::overwrite_existing);
    setenv("FALCON_FAKE_NET_FAULT", fault.c_str(), 1);
    if (!name.empty()) setenv("FALCON_FAKE_NET_NAME", name.c_str(), 1);
    library_ = dlopen(path_.c_str(), RTLD_NOW | RTLD_LOCAL);
    unsetenv("FALCON_FAKE_NET_FAULT");
    unsetenv("FALCON_FAKE_NET_NAME");
    if (!library_) ADD_FAILURE() << dlerror();
  }
  ~FakeNet() { std::filesystem::remove(path_); }  // the library stays loaded, as plugins do
  FakeNet(const FakeNet&) = delete;
  FakeNet& operator=(const FakeNet&) = delete;

  /// For NCCL_NET_PLUGIN.
  const std::string& path() const { return path_; }
  /// In this process.
  FakeNetCounts& counts() const { return *reinterpret_cast<FakeNetCounts* (*)()>(dlsym(library_, "fakeNetCounts"))(); }

 private:
  std::string path_;
  void* library_ = nullptr;
};

}  // namespace falcon::test
