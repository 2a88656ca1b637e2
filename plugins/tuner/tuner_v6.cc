// What NCCL loads as version 6.
#include "plugin/tuner/tuner_v6.h"

#include "tuner/plugin.h"

namespace {

using namespace falcon::plugin;
using namespace falcon::tuner;

ResultCode init(void** context, std::uint64_t, std::size_t ranks, std::size_t, Logger, NvlDomains*, TunerConstantsV5*) {
  return begin(context, ranks);
}

}  // namespace

extern "C" [[gnu::visibility("default")]] const TunerV6 ncclTunerPlugin_v6{pluginName, init, getCollInfo, end, nullptr};
