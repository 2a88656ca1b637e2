// What NCCL loads as version 5.
#include "plugin/tuner/tuner_v5.h"

#include "tuner/plugin.h"

namespace {

using namespace falcon::plugin;
using namespace falcon::tuner;

ResultCode init(void** context, std::uint64_t, std::size_t ranks, std::size_t, Logger, NvlDomains*, TunerConstantsV5*) {
  return begin(context, ranks);
}

}  // namespace

extern "C" [[gnu::visibility("default")]] const TunerV5 ncclTunerPlugin_v5{pluginName, init, getCollInfo, end};
