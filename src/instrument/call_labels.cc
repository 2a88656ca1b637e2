#include "instrument/call_labels.h"

#include <array>
#include <cstddef>

#include "nccl_falcon.h"

namespace falcon::instrument {
namespace {

constexpr ncclCollConfig_t defaults = NCCL_COLLCONFIG_INITIALIZER;
/// The first release's structure (2.31) ended here.
constexpr std::size_t leastBytes = offsetof(ncclCollConfig_t, launchCompletionEvent);
constexpr std::size_t mostBytes = 4096;
constexpr unsigned firstVersion = NCCL_VERSION(2, 31, 0);

struct Option {
  int id;
  const char* name;
};
constexpr std::array<Option, 3> options{{{NCCL_FALCON_OPTION_ITERATION, "NCCL_FALCON_OPTION_ITERATION"},
                                         {NCCL_FALCON_OPTION_PHASE, "NCCL_FALCON_OPTION_PHASE"},
                                         {NCCL_FALCON_OPTION_GROUP, "NCCL_FALCON_OPTION_GROUP"}}};

}  // namespace

bool isInitialized(const ncclCollConfig_t& config) {
  return config.magic == defaults.magic && config.size >= leastBytes && config.size <= mostBytes &&
         config.version >= firstVersion;
}

Result<CallLabels> labelsOf(const ncclCollConfig_t& config) {
  std::array<std::int32_t, options.size()> values;
  values.fill(CallLabels::none);
  int count = 0;
  for (const ncclConfigExt_t* each = config.ext; each; each = each->next) {
    if (++count > mostExtensions)
      return Error::invalidArgument("config->ext has more than {} entries; does its last one have next = NULL?",
                                    mostExtensions);
    if (each->key.vendorId != NCCL_FALCON_VENDOR_ID) continue;
    for (std::size_t i = 0; i < options.size(); ++i) {
      if (each->key.optionId != options[i].id) continue;
      if (each->val.i < 0) return Error::invalidArgument("{} is {}, below 0", options[i].name, each->val.i);
      if (values[i] != CallLabels::none) return Error::invalidArgument("{} is there twice", options[i].name);
      values[i] = each->val.i;
    }
  }
  return CallLabels{config.userProfilerTag, values[0], values[1], values[2]};
}

}  // namespace falcon::instrument
