#include "validate/gpu_state.h"

#include <map>
#include <mutex>

#include "base/module_file.h"
#include "base/shared_library.h"

namespace falcon::validate {
namespace {

// NVML's C interface as far as it is used here, from its public reference; nvml.h is not needed to build.
using Status = int;
using Device = void*;
using EventSet = void*;
constexpr Status success = 0;
constexpr unsigned multiprocessorClock = 1;
constexpr unsigned gpuTemperature = 0;
constexpr unsigned slowdownThreshold = 1;
constexpr unsigned uncorrectedErrors = 1;
constexpr unsigned sinceDriverLoad = 0;
constexpr int powerPolicy = 0;
constexpr int thermalPolicy = 1;
constexpr unsigned long long xidEvents = 8;
constexpr double milli = 1e-3;

struct Violation {
  unsigned long long referenceTime;  // microseconds
  unsigned long long violationTime;  // nanoseconds
};

struct EventData {
  Device device;
  unsigned long long type;
  unsigned long long data;
  unsigned gpuInstance;
  unsigned computeInstance;
};

struct Functions {
  Status (*init)() = nullptr;
  Status (*shutdown)() = nullptr;
  const char* (*errorString)(Status) = nullptr;
  Status (*deviceByBus)(const char*, Device*) = nullptr;
  // Not in every driver, or not for every device:
  Status (*clock)(Device, unsigned, unsigned*) = nullptr;
  Status (*highestClock)(Device, unsigned, unsigned*) = nullptr;
  Status (*temperature)(Device, unsigned, unsigned*) = nullptr;
  Status (*threshold)(Device, unsigned, unsigned*) = nullptr;
  Status (*power)(Device, unsigned*) = nullptr;
  Status (*powerLimit)(Device, unsigned*) = nullptr;
  Status (*reasons)(Device, unsigned long long*) = nullptr;
  Status (*violation)(Device, int, Violation*) = nullptr;
  Status (*errors)(Device, unsigned, unsigned, unsigned long long*) = nullptr;
  Status (*makeEvents)(EventSet*) = nullptr;
  Status (*registerEvents)(Device, unsigned long long, EventSet) = nullptr;
  Status (*waitForEvent)(EventSet, EventData*, unsigned) = nullptr;
  Status (*freeEvents)(EventSet) = nullptr;
};

/// A figure that a call of one output gives.
template <class Out, class Function, class... Arguments>
std::optional<Out> ask(Function function, Arguments... arguments) {
  Out value{};
  if (!function || function(arguments..., &value) != success) return {};
  return value;
}

std::optional<double> scaled(std::optional<unsigned> value, double factor) {
  if (!value) return {};
  return *value * factor;
}

class Nvml final : public GpuManagement {
 public:
  explicit Nvml(const Functions& functions) : functions_(functions) {
    if (functions_.makeEvents && functions_.makeEvents(&events_) != success) events_ = nullptr;
  }
  Nvml(const Nvml&) = delete;
  Nvml& operator=(const Nvml&) = delete;
  ~Nvml() override {
    if (events_ && functions_.freeEvents) functions_.freeEvents(events_);
    functions_.shutdown();
  }

  Result<GpuState> stateOf(const std::string& bus) override {
    const std::lock_guard lock(mutex_);
    const auto known = watch(bus);
    if (!known) return known.error();
    const Device device = (*known)->device;
    GpuState state;
    state.clock = scaled(ask<unsigned>(functions_.clock, device, multiprocessorClock), 1);
    state.highestClock = scaled(ask<unsigned>(functions_.highestClock, device, multiprocessorClock), 1);
    state.temperature = scaled(ask<unsigned>(functions_.temperature, device, gpuTemperature), 1);
    state.slowdownTemperature = scaled(ask<unsigned>(functions_.threshold, device, slowdownThreshold), 1);
    state.power = scaled(ask<unsigned>(functions_.power, device), milli);
    state.powerLimit = scaled(ask<unsigned>(functions_.powerLimit, device), milli);
    state.reasons = ask<unsigned long long>(functions_.reasons, device);
    state.heldByPower = heldBy(device, powerPolicy);
    state.heldByThermal = heldBy(device, thermalPolicy);
    state.uncorrected = ask<unsigned long long>(functions_.errors, device, uncorrectedErrors, sinceDriverLoad);
    readEvents();
    if ((*known)->watched) state.lastXid = (*known)->lastXid;
    return state;
  }

 private:
  struct Known {
    Device device = nullptr;
    bool watched = false;  // for critical errors
    std::uint64_t lastXid = 0;
  };

  Result<Known*> watch(const std::string& bus) {
    if (const auto found = known_.find(bus); found != known_.end()) return &found->second;
    Known known;
    if (const Status status = functions_.deviceByBus(bus.c_str(), &known.device); status != success)
      return Error::system("NVML does not know the GPU at {}: {}", bus,
                           functions_.errorString ? functions_.errorString(status) : "no reason given");
    known.watched = events_ && functions_.registerEvents && functions_.waitForEvent &&
                    functions_.registerEvents(known.device, xidEvents, events_) == success;
    return &known_.emplace(bus, known).first->second;
  }

  std::optional<Nanoseconds> heldBy(Device device, int policy) const {
    const auto violation = ask<Violation>(functions_.violation, device, policy);
    if (!violation) return {};
    return Nanoseconds(static_cast<std::int64_t>(violation->violationTime));
  }

  void readEvents() {
    EventData event{};
    // Without waiting, and no more of them than a broken driver could repeat for ever.
    for (int i = 0; events_ && functions_.waitForEvent && i < 100; ++i) {
      if (functions_.waitForEvent(events_, &event, 0) != success) return;
      for (auto& [bus, known] : known_)
        if (known.device == event.device && (event.type & xidEvents)) known.lastXid = event.data;
    }
  }

  const Functions functions_;
  std::mutex mutex_;
  EventSet events_ = nullptr;
  std::map<std::string, Known> known_;
};

}  // namespace

std::string describeReasons(std::uint64_t reasons) {
  // Idle, application clocks, synchronous boost and display clocks are no faults and are left out.
  constexpr std::pair<std::uint64_t, const char*> names[] = {
      {0x04, "power cap"},
      {0x08, "slowdown by hardware"},
      {0x20, "thermal slowdown by software"},
      {0x40, "thermal slowdown by hardware"},
      {0x80, "power brake"},
  };
  std::string text;
  for (const auto& [bit, name] : names) {
    if (!(reasons & bit)) continue;
    if (!text.empty()) text += ", ";
    text += name;
  }
  return text;
}

Result<std::unique_ptr<GpuManagement>> openGpuManagement(const std::string& path) {
  const auto opened = openModule(path);
  if (!opened) return opened.error();
  void* library = *opened;
  Functions functions;
  if (!findFunction(library, "nvmlInit_v2", functions.init) ||
      !findFunction(library, "nvmlShutdown", functions.shutdown) ||
      !findFunction(library, "nvmlDeviceGetHandleByPciBusId_v2", functions.deviceByBus))
    return Error::system("{} is no NVML as it is known here", path);
  findFunction(library, "nvmlErrorString", functions.errorString);
  findFunction(library, "nvmlDeviceGetClockInfo", functions.clock);
  findFunction(library, "nvmlDeviceGetMaxClockInfo", functions.highestClock);
  findFunction(library, "nvmlDeviceGetTemperature", functions.temperature);
  findFunction(library, "nvmlDeviceGetTemperatureThreshold", functions.threshold);
  findFunction(library, "nvmlDeviceGetPowerUsage", functions.power);
  findFunction(library, "nvmlDeviceGetEnforcedPowerLimit", functions.powerLimit);
  // Newer drivers call them event reasons.
  if (!findFunction(library, "nvmlDeviceGetCurrentClocksEventReasons", functions.reasons))
    findFunction(library, "nvmlDeviceGetCurrentClocksThrottleReasons", functions.reasons);
  findFunction(library, "nvmlDeviceGetViolationStatus", functions.violation);
  findFunction(library, "nvmlDeviceGetTotalEccErrors", functions.errors);
  findFunction(library, "nvmlEventSetCreate", functions.makeEvents);
  findFunction(library, "nvmlDeviceRegisterEvents", functions.registerEvents);
  findFunction(library, "nvmlEventSetWait_v2", functions.waitForEvent);
  findFunction(library, "nvmlEventSetFree", functions.freeEvents);
  if (const Status status = functions.init(); status != success)
    return Error::system("NVML cannot be initialised: {}",
                         functions.errorString ? functions.errorString(status) : "no reason given");
  return std::unique_ptr<GpuManagement>(std::make_unique<Nvml>(functions));
}

}  // namespace falcon::validate
