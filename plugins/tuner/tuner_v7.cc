// What NCCL loads as version 7.
#include "plugin/tuner/tuner_v7.h"

#include "tuner/plugin.h"

extern "C" [[gnu::visibility("default")]] const falcon::plugin::TunerV7 ncclTunerPlugin_v7{
    falcon::tuner::pluginName, falcon::tuner::beginFrom5, falcon::tuner::getCollInfo, falcon::tuner::end, nullptr};
