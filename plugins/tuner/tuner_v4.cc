// What NCCL loads as version 4.
#include "plugin/tuner/tuner_v4.h"

#include "tuner/plugin.h"

namespace {

using namespace falcon::plugin;
using namespace falcon::tuner;

ResultCode init(std::size_t ranks, std::size_t, Logger, void** context) {
  return begin(context, ranks);
}

}  // namespace

extern "C" [[gnu::visibility("default")]] const TunerV4 ncclTunerPlugin_v4{pluginName, init, getCollInfo, end};
