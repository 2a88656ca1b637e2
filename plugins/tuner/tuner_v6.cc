// What NCCL loads as version 6.
#include "plugin/tuner/tuner_v6.h"

#include "tuner/plugin.h"

extern "C" [[gnu::visibility("default")]] const falcon::plugin::TunerV6 ncclTunerPlugin_v6{
    falcon::tuner::pluginName, falcon::tuner::beginFrom5, falcon::tuner::getCollInfo, falcon::tuner::end, nullptr};
