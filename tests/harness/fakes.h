// Loads the fake vendor library and the fake CUDA driver, and reads what they were asked.
#pragma once

#include <dlfcn.h>

#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

namespace falcon::harness {

/// A function of a loaded library; throws where there is none, so that a test fails loudly.
template <class Function>
Function* functionOf(void* library, const char* name) {
  auto* function = library ? reinterpret_cast<Function*>(dlsym(library, name)) : nullptr;
  if (!function) throw std::runtime_error(std::string("no function ") + name);
  return function;
}

class FakeVendor {
 public:
  explicit FakeVendor(const char* path) : library_(dlopen(path, RTLD_NOW | RTLD_LOCAL)) {}
  /// The calls since the last time.
  std::vector<std::string> takeLog() {
    std::string text(1 << 20, '\0');
    functionOf<void(char*, std::size_t)>(library_, "fakeVendorTakeLog")(text.data(), text.size());
    std::istringstream lines(text.c_str());
    std::vector<std::string> log;
    for (std::string line; std::getline(lines, line);) log.push_back(line);
    return log;
  }
  void fail(int result) { functionOf<void(int)>(library_, "fakeVendorFail")(result); }
  void setAsyncError(int result) { functionOf<void(int)>(library_, "fakeVendorSetAsyncError")(result); }

 private:
  void* library_;
};

class FakeCuda {
 public:
  explicit FakeCuda(const char* path) : library_(dlopen(path, RTLD_NOW | RTLD_LOCAL)) {}
  void setDeviceMemory(void* start, std::size_t size) {
    functionOf<void(void*, std::size_t)>(library_, "fakeCudaDeviceMemory")(start, size);
  }

 private:
  void* library_;
};

}  // namespace falcon::harness
