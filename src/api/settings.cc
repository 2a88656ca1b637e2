#include "api/settings.h"

#include <cstddef>
#include <cstring>
#include <string_view>

#include "base/log.h"
#include "base/parameters.h"

namespace falcon::api {
namespace {

constexpr ncclConfig_t defaults = NCCL_CONFIG_INITIALIZER;

/// The version that brought a run of int fields, up to the next row.
struct Era {
  unsigned version;
  size_t begin;
};
constexpr Era eras[] = {
    {NCCL_VERSION(2, 14, 0), offsetof(ncclConfig_t, blocking)},
    {NCCL_VERSION(2, 17, 0), offsetof(ncclConfig_t, cgaClusterSize)},
    {NCCL_VERSION(2, 18, 0), offsetof(ncclConfig_t, splitShare)},
    {NCCL_VERSION(2, 25, 0), offsetof(ncclConfig_t, trafficClass)},
    {NCCL_VERSION(2, 27, 0), offsetof(ncclConfig_t, commName)},
    {NCCL_VERSION(2, 28, 0), offsetof(ncclConfig_t, nChannelsPerNetPeer)},
    {NCCL_VERSION(2, 29, 0), offsetof(ncclConfig_t, graphUsageMode)},
    {NCCL_VERSION(2, 30, 0), offsetof(ncclConfig_t, maxP2pPeers)},
    // In what was padding before: the size does not tell.
    {NCCL_VERSION(2, 30, 5), offsetof(ncclConfig_t, graphStreamOrdering)},
    {NCCL_VERSION(2, 31, 0), offsetof(ncclConfig_t, launchOrderImplicit)},
    {NCCL_VERSION(2, 32, 0), offsetof(ncclConfig_t, nvlsHostMode)},
};

/// Bytes of the caller's structure that mean something.
size_t knownBytes(const ncclConfig_t& config) {
  size_t known = std::min(config.size, sizeof(ncclConfig_t));
  for (const Era& era : eras)
    if (config.version < era.version) return std::min(known, era.begin);
  return known;
}

bool isFlag(int value) {
  return value == NCCL_CONFIG_UNDEF_INT || value == 0 || value == 1;
}
bool isUnsetOr(int value, int low, int high) {
  return value == NCCL_CONFIG_UNDEF_INT || (value >= low && value <= high);
}

/// The first field whose value cannot be, or null: what NCCL 2.32 refuses, and nothing else.
const char* badField(const ncclConfig_t& config) {
  if (!isFlag(config.blocking)) return "blocking";
  if (!isUnsetOr(config.cgaClusterSize, 0, INT_MAX)) return "cgaClusterSize";
  if (!isUnsetOr(config.minCTAs, 1, INT_MAX)) return "minCTAs";
  if (!isUnsetOr(config.maxCTAs, 1, INT_MAX)) return "maxCTAs";
  const bool bothSet = config.minCTAs != NCCL_CONFIG_UNDEF_INT && config.maxCTAs != NCCL_CONFIG_UNDEF_INT;
  if (bothSet && config.minCTAs > config.maxCTAs) return "minCTAs (above maxCTAs)";
  if (!isFlag(config.splitShare)) return "splitShare";
  if (!isFlag(config.shrinkShare)) return "shrinkShare";
  if (!isFlag(config.collnetEnable)) return "collnetEnable";
  if (!isUnsetOr(config.CTAPolicy, NCCL_CTA_POLICY_DEFAULT, NCCL_CTA_POLICY_EFFICIENCY | NCCL_CTA_POLICY_ZERO))
    return "CTAPolicy";
  if (!isUnsetOr(config.nvlsCTAs, 1, INT_MAX)) return "nvlsCTAs";
  if (!isUnsetOr(config.nChannelsPerNetPeer, 1, 64)) return "nChannelsPerNetPeer";
  if (!isFlag(config.nvlinkCentricSched)) return "nvlinkCentricSched";
  if (!isUnsetOr(config.graphUsageMode, 0, 2)) return "graphUsageMode";
  if (!isUnsetOr(config.numRmaCtx, 0, INT_MAX)) return "numRmaCtx";
  if (!isUnsetOr(config.maxP2pPeers, 1, INT_MAX)) return "maxP2pPeers";
  if (!isFlag(config.graphStreamOrdering)) return "graphStreamOrdering";
  if (!isUnsetOr(config.launchOrderImplicit, 0, 2)) return "launchOrderImplicit";
  if (!isUnsetOr(config.numRmaSig, 0, INT_MAX)) return "numRmaSig";
  if (!isFlag(config.rmaEagerInit)) return "rmaEagerInit";
  if (!isUnsetOr(config.hostCftMode, ncclHostCftEnable, ncclHostCftFallback)) return "hostCftMode";
  if (config.nvlsHostMode != ncclNvlsHostModeDisable &&
      !isUnsetOr(config.nvlsHostMode, ncclNvlsHostModeEnable, ncclNvlsHostModeDisableSymmetricMultimem))
    return "nvlsHostMode";
  return nullptr;
}

Result<Settings> configuredSettings(const char* function, const ncclConfig_t* config) {
  Settings settings;
  if (!config) return settings;
  constexpr size_t head = offsetof(ncclConfig_t, blocking);
  if (config->magic != defaults.magic || config->size < head || config->size > 16 * sizeof(ncclConfig_t))
    return log::decided(
        Error::invalidArgument("{}: config was not initialized: start from NCCL_CONFIG_INITIALIZER", function));

  ncclConfig_t& values = settings.vendor.values;
  // Only what the caller's structure has is read.
  std::memcpy(reinterpret_cast<char*>(&values) + head, reinterpret_cast<const char*>(config) + head,
              knownBytes(*config) > head ? knownBytes(*config) - head : 0);
  if (const char* field = badField(values))
    return log::decided(Error::invalidArgument("{}: config.{} has a value that cannot be", function, field));
  settings.blocking = values.blocking != 0;
  // The texts are the caller's only during the call.
  if (values.netName) settings.vendor.networkName = values.netName;
  if (values.commName) settings.vendor.name = values.commName;
  return settings;
}

}  // namespace

collectives::CommunicatorWish Settings::wish() const {
  const auto given = [](int value) { return value == NCCL_CONFIG_UNDEF_INT ? 0 : value; };
  return {given(vendor.values.minCTAs), given(vendor.values.maxCTAs), vendor.name};
}

Result<Settings> readChildSettings(const char* function, const ncclConfig_t* config, const Settings& parent) {
  if (config) return readSettings(function, config);
  Settings settings = parent;
  settings.isParents = true;
  return settings;
}

Result<Settings> readSettings(const char* function, const ncclConfig_t* config) {
  auto settings = configuredSettings(function, config);
  const std::string_view wanted = parameters::blockingWords[parameters::blocking.value()];
  if (settings && wanted != "configured") settings->blocking = wanted == "1";
  return settings;
}

}  // namespace falcon::api
