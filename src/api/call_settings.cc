#include "api/call_settings.h"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <utility>

#include "base/log.h"
#include "instrument/call_labels.h"

namespace falcon::api {
namespace {

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

/// The list, unlinked. Errors (invalidArgument): it has a key twice, or no end.
Result<std::vector<ncclConfigExt_t>> extensionsOf(const char* function, const ncclConfigExt_t* first) {
  constexpr std::size_t most = instrument::mostExtensions;
  std::vector<ncclConfigExt_t> all;
  for (const ncclConfigExt_t* each = first; each; each = each->next) {
    if (all.size() == most)
      return log::decided(Error::invalidArgument(
          "{}: config->ext has more than {} entries; does its last one have next = NULL?", function, most));
    for (const ncclConfigExt_t& before : all)
      if (before.key.vendorId == each->key.vendorId && before.key.optionId == each->key.optionId)
        return log::decided(Error::invalidArgument("{}: config->ext has option {} of vendor {:#x} twice", function,
                                                   each->key.optionId, each->key.vendorId));
    all.push_back(*each);
  }
  return all;
}

}  // namespace

CallConfig::CallConfig(const ncclCollConfig_t& given, std::vector<ncclConfigExt_t> extensions, const CallLabels& labels)
    // Whole, also where a later release has more: the vendor's library may know that.
    : words_((std::max(given.size, sizeof(ncclCollConfig_t)) + 7) / 8),
      extensions_(std::move(extensions)),
      labels_(labels) {
  std::memcpy(words_.data(), &given, given.size);
  for (std::size_t i = 0; i < extensions_.size(); ++i)
    extensions_[i].next = i + 1 < extensions_.size() ? &extensions_[i + 1] : nullptr;
  reinterpret_cast<ncclCollConfig_t*>(words_.data())->ext = extensions_.empty() ? nullptr : extensions_.data();
}

Result<CallSettings> readCallSettings(const char* function, const ncclCollConfig_t* config) {
  if (!config) return CallSettings();
  if (!instrument::isInitialized(*config))
    return log::decided(
        Error::invalidArgument("{}: config was not initialized: start from NCCL_COLLCONFIG_INITIALIZER", function));
  if (const char* field = badField(*config))
    return log::decided(Error::invalidArgument("{}: config->{} has a value that cannot be", function, field));
  auto extensions = extensionsOf(function, config->ext);
  if (!extensions) return extensions.error();
  const auto labels = instrument::labelsOf(*config);
  if (!labels) return log::decided(Error::invalidArgument("{}: {}", function, labels.error().message()));
  return std::make_shared<const CallConfig>(*config, std::move(*extensions), *labels);
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
