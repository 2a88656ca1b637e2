#include "gpu/cuda_driver.h"

#include <dlfcn.h>

#include <cstdint>
#include <fstream>
#include <string>
#include <string_view>

#include "base/shared_library.h"

namespace falcon::gpu {
namespace {

// The driver's C interface, as far as it is used here.
using DriverCode = int;
using Device = int;
constexpr DriverCode success = 0;
constexpr int attributeMemoryType = 2;
constexpr int attributeIsManaged = 8;
constexpr unsigned memoryTypeDevice = 2;
constexpr const char *libraryName = "libcuda.so", *libraryFile = "libcuda.so.1";

struct DriverFunctions {
  DriverCode (*init)(unsigned flags) = nullptr;
  DriverCode (*deviceCount)(int* count) = nullptr;
  DriverCode (*deviceGet)(Device* device, int ordinal) = nullptr;
  DriverCode (*pointerAttribute)(void* value, int attribute, std::uintptr_t pointer) = nullptr;
  DriverCode (*contextGetCurrent)(void** context) = nullptr;
  DriverCode (*contextSetCurrent)(void* context) = nullptr;
  DriverCode (*primaryContextRetain)(void** context, Device device) = nullptr;
};

struct EventFunctions {
  DriverCode (*create)(void** event, unsigned flags) = nullptr;
  DriverCode (*record)(void* event, void* stream) = nullptr;
  DriverCode (*query)(void* event) = nullptr;
  DriverCode (*destroy)(void* event) = nullptr;
  DriverCode (*isCapturing)(void* stream, int* status) = nullptr;
  DriverCode (*contextOf)(void* stream, void** context) = nullptr;
  DriverCode (*pushContext)(void* context) = nullptr;
  DriverCode (*popContext)(void** context) = nullptr;
  DriverCode (*exchangeCaptureMode)(int* mode) = nullptr;
  DriverCode (*elapsedTime)(float* milliseconds, void* first, void* second) = nullptr;
  DriverCode (*createStream)(void** stream, unsigned flags) = nullptr;

  bool find(void* library) {
    return findFunction(library, "cuEventCreate", create) && findFunction(library, "cuEventRecord", record) &&
           findFunction(library, "cuEventQuery", query) && findFunction(library, "cuEventDestroy_v2", destroy) &&
           findFunction(library, "cuStreamIsCapturing", isCapturing) &&
           findFunction(library, "cuStreamGetCtx", contextOf) &&
           findFunction(library, "cuCtxPushCurrent_v2", pushContext) &&
           findFunction(library, "cuCtxPopCurrent_v2", popContext) &&
           findFunction(library, "cuThreadExchangeStreamCaptureMode", exchangeCaptureMode) &&
           findFunction(library, "cuEventElapsedTime", elapsedTime) &&
           findFunction(library, "cuStreamCreate", createStream);
  }
};

class LoadedEvents final : public StreamEvents {
 public:
  explicit LoadedEvents(const EventFunctions& functions) : functions_(functions) {}

  void* record(void* stream, void* event, Kind kind) const override {
    const Uncaptured uncaptured(functions_);
    int capturing = 0;
    if (functions_.isCapturing(stream, &capturing) != success || capturing != 0) {
      if (event) free(event);
      return nullptr;
    }
    if (event && functions_.record(event, stream) == success) return event;
    // It was for a stream of another context that had the same handle.
    if (event) free(event);
    void *context = nullptr, *made = nullptr;
    if (functions_.contextOf(stream, &context) != success || functions_.pushContext(context) != success) return nullptr;
    const bool recorded = functions_.create(&made, kind == Kind::timed ? withTiming : withoutTiming) == success &&
                          functions_.record(made, stream) == success;
    functions_.popContext(&context);
    if (recorded) return made;
    if (made) free(made);
    return nullptr;
  }

  bool isDone(void* event) const override {
    const Uncaptured uncaptured(functions_);
    return functions_.query(event) != notReady;
  }
  void free(void* event) const override {
    const Uncaptured uncaptured(functions_);
    functions_.destroy(event);
  }

  std::optional<Nanoseconds> between(void* first, void* second) const override {
    const Uncaptured uncaptured(functions_);
    float milliseconds = 0;
    if (functions_.elapsedTime(&milliseconds, first, second) != success) return std::nullopt;
    return fromSeconds(static_cast<double>(milliseconds) * 1e-3);
  }
  void* contextOf(void* stream) const override {
    const Uncaptured uncaptured(functions_);
    void* context = nullptr;
    return functions_.contextOf(stream, &context) == success ? context : nullptr;
  }
  void* makeStream(void* context) const override {
    const Uncaptured uncaptured(functions_);
    void *stream = nullptr, *popped = nullptr;
    if (functions_.pushContext(context) != success) return nullptr;
    const bool made = functions_.createStream(&stream, nonBlocking) == success;
    functions_.popContext(&popped);
    return made ? stream : nullptr;
  }

 private:
  static constexpr DriverCode notReady = 600;
  static constexpr unsigned withTiming = 0, withoutTiming = 2, nonBlocking = 1;

  /// While it lives, this thread's calls do not end the capture that another thread has begun.
  class Uncaptured {
   public:
    explicit Uncaptured(const EventFunctions& functions) : functions_(functions) {
      functions_.exchangeCaptureMode(&mode_);
    }
    ~Uncaptured() { functions_.exchangeCaptureMode(&mode_); }
    Uncaptured(const Uncaptured&) = delete;

   private:
    const EventFunctions& functions_;
    int mode_ = 2;  // relaxed; then the mode before
  };

  EventFunctions functions_;
};

class LoadedDriver final : public CudaDriver {
 public:
  LoadedDriver(const DriverFunctions& functions, std::unique_ptr<const StreamEvents> events)
      : functions_(functions), events_(std::move(events)) {}

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

  const StreamEvents* streamEvents() const override { return events_.get(); }

 private:
  DriverFunctions functions_;
  std::unique_ptr<const StreamEvents> events_;
};

std::shared_ptr<const CudaDriver> open(int mode) {
  // Never closed: the driver keeps threads and contexts.
  void* library = dlopen(libraryFile, RTLD_NOW | RTLD_LOCAL | mode);
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
  EventFunctions events;
  return std::make_shared<LoadedDriver>(table, events.find(library) ? std::make_unique<LoadedEvents>(events) : nullptr);
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
  return isMapped(libraryName) ? open(RTLD_NOLOAD) : nullptr;
}

std::optional<int> deviceCountIfInitialised() {
  void* const library = isMapped(libraryName) ? dlopen(libraryFile, RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD) : nullptr;
  if (!library) return std::nullopt;
  DriverCode (*deviceCount)(int* count) = nullptr;
  int count = 0;
  const bool known = findFunction(library, "cuDeviceGetCount", deviceCount) && deviceCount(&count) == success;
  dlclose(library);
  return known ? std::optional(count) : std::nullopt;
}

}  // namespace falcon::gpu
