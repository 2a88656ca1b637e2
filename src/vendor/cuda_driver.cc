#include "vendor/cuda_driver.h"

#include <dlfcn.h>

#include <cstdint>
#include <fstream>
#include <string>
#include <string_view>

#include "base/shared_library.h"

namespace falcon::vendor {
namespace {

// The driver's C interface, as far as it is used here.
using Result = int;
using Device = int;
constexpr Result success = 0;
constexpr int attributeMemoryType = 2;
constexpr int attributeIsManaged = 8;
constexpr unsigned memoryTypeDevice = 2;

struct DriverFunctions {
  Result (*init)(unsigned flags) = nullptr;
  Result (*deviceCount)(int* count) = nullptr;
  Result (*deviceGet)(Device* device, int ordinal) = nullptr;
  Result (*pointerAttribute)(void* value, int attribute, std::uintptr_t pointer) = nullptr;
  Result (*contextGetCurrent)(void** context) = nullptr;
  Result (*contextSetCurrent)(void* context) = nullptr;
  Result (*primaryContextRetain)(void** context, Device device) = nullptr;
};

class LoadedDriver final : public CudaDriver {
 public:
  explicit LoadedDriver(const DriverFunctions& functions) : functions_(functions) {}

  int deviceCount() const override {
    int count = 0;
    return functions_.deviceCount(&count) == success ? count : 0;
  }

  MemoryKind memoryOf(const void* pointer) const override {
    const auto address = reinterpret_cast<std::uintptr_t>(pointer);
    unsigned managed = 0;
    if (functions_.pointerAttribute(&managed, attributeIsManaged, address) == success && managed)
      return MemoryKind::managed;
    unsigned type = 0;
    if (functions_.pointerAttribute(&type, attributeMemoryType, address) != success || type == 0)
      return MemoryKind::pageable;
    return type == memoryTypeDevice ? MemoryKind::device : MemoryKind::pinned;
  }

  void* currentContext() const override {
    void* context = nullptr;
    return functions_.contextGetCurrent(&context) == success ? context : nullptr;
  }
  void makeCurrent(void* context) const override { functions_.contextSetCurrent(context); }

  bool useDevice(int device) const override {
    Device handle = 0;
    void* context = nullptr;
    return functions_.deviceGet(&handle, device) == success &&
           functions_.primaryContextRetain(&context, handle) == success &&
           functions_.contextSetCurrent(context) == success;
  }

 private:
  DriverFunctions functions_;
};

std::shared_ptr<const CudaDriver> open(int mode) {
  // Never closed: the driver keeps threads and contexts.
  void* library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL | mode);
  if (!library) return nullptr;
  DriverFunctions table;
  if (!findFunction(library, "cuInit", table.init) || !findFunction(library, "cuDeviceGetCount", table.deviceCount) ||
      !findFunction(library, "cuDeviceGet", table.deviceGet) ||
      !findFunction(library, "cuPointerGetAttribute", table.pointerAttribute) ||
      !findFunction(library, "cuCtxGetCurrent", table.contextGetCurrent) ||
      !findFunction(library, "cuCtxSetCurrent", table.contextSetCurrent) ||
      !findFunction(library, "cuDevicePrimaryCtxRetain", table.primaryContextRetain))
    return nullptr;
  if (table.init(0) != success) return nullptr;
  return std::make_shared<LoadedDriver>(table);
}

/// Whether a library of this name, whatever its version, is mapped. Not by dlopen(RTLD_NOLOAD): for a library that is
/// not there the loader searches the disk, and a child that is forked meanwhile by another thread inherits the loader
/// in the midst of it (seen to crash in the child's next dlopen).
bool isMapped(std::string_view name) {
  std::ifstream maps("/proc/self/maps");
  if (!maps) return true;  // cannot say: let the loader look
  for (std::string line; std::getline(maps, line);) {
    const auto slash = line.rfind('/');
    if (slash != std::string::npos && std::string_view(line).substr(slash + 1).starts_with(name)) return true;
  }
  return false;
}

}  // namespace

std::shared_ptr<const CudaDriver> loadCudaDriver() {
  return open(0);
}

std::shared_ptr<const CudaDriver> cudaDriverIfLoaded() {
  return isMapped("libcuda.so") ? open(RTLD_NOLOAD) : nullptr;
}

}  // namespace falcon::vendor
