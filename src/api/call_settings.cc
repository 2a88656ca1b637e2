#include "api/call_settings.h"

#include <cstddef>
#include <cstring>
#include <new>

#include "base/log.h"

namespace falcon::api {
namespace {

constexpr ncclCollConfig_t defaults = NCCL_COLLCONFIG_INITIALIZER;
/// The first release's structure (2.31) ended here.
constexpr std::size_t leastBytes = offsetof(ncclCollConfig_t, launchCompletionEvent);
constexpr unsigned firstVersion = NCCL_VERSION(2, 31, 0);
constexpr std::size_t mostBytes = 4096;

bool isUnsetOrPositive(int value) {
  return value == NCCL_CONFIG_UNDEF_INT || value > 0;
}

/// The first field whose value cannot be, or null.
const char* badField(const ncclCollConfig_t& config) {
  if (!isUnsetOrPositive(config.minCTAs)) return "minCTAs";
  if (!isUnsetOrPositive(config.maxCTAs)) return "maxCTAs";
  if (config.minCTAs != NCCL_CONFIG_UNDEF_INT && config.maxCTAs != NCCL_CONFIG_UNDEF_INT &&
      config.minCTAs > config.maxCTAs)
    return "minCTAs (above maxCTAs)";
  if (!isUnsetOrPositive(config.nvlsCTAs)) return "nvlsCTAs";
  if (config.userProfilerTag >> 63 != 0) return "userProfilerTag (its top bit is reserved)";
  return nullptr;
}

}  // namespace

Result<CallSettings> readCallSettings(const char* function, const ncclCollConfig_t* config) {
  if (!config) return CallSettings();
  if (config->magic != defaults.magic || config->size < leastBytes || config->size > mostBytes ||
      config->version < firstVersion)
    return log::decided(
        Error::invalidArgument("{}: config was not initialized: start from NCCL_COLLCONFIG_INITIALIZER", function));
  if (const char* field = badField(*config))
    return log::decided(Error::invalidArgument("{}: config->{} has a value that cannot be", function, field));
  // Whole, also where a later release has more: the vendor's library may know that.
  const std::size_t bytes = std::max(config->size, sizeof(ncclCollConfig_t));
  auto* const memory = static_cast<char*>(::operator new(bytes));
  std::memset(memory, 0, bytes);
  std::memcpy(memory, config, config->size);
  return CallSettings(reinterpret_cast<const ncclCollConfig_t*>(memory),
                      [](const ncclCollConfig_t* copy) { ::operator delete(const_cast<ncclCollConfig_t*>(copy)); });
}

Status checkForHost(const char* function, const ncclCollConfig_t& config) {
  const bool chosen = config.algSelection && *config.algSelection;
  if (!chosen || config.forceAlgSelection == 0) return {};
  return log::decided(
      Error::invalidUsage("{}: config->algSelection is '{}': on host memory NCCL_ALGO chooses, for all calls; set "
                          "forceAlgSelection to 0 to "
                          "go on without",
                          function, config.algSelection));
}

}  // namespace falcon::api
