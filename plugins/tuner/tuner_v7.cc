// What NCCL loads as version 7.
#include "plugin/tuner/tuner_v7.h"

#include "tuner/plugin.h"

namespace {

using namespace falcon::plugin;
using namespace falcon::tuner;

ResultCode init(void** context, std::uint64_t, std::size_t ranks, std::size_t, Logger, NvlDomains*, TunerConstantsV7*) {
  return begin(context, ranks);
}

}  // namespace

extern "C" [[gnu::visibility("default")]] const TunerV7 ncclTunerPlugin_v7{pluginName, init, getCollInfo, end, nullptr};
