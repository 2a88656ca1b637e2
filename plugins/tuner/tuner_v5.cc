// What NCCL loads as version 5.
#include "plugin/tuner/tuner_v5.h"

#include "tuner/plugin.h"

extern "C" [[gnu::visibility("default")]] const falcon::plugin::TunerV5 ncclTunerPlugin_v5{
    falcon::tuner::pluginName, falcon::tuner::beginFrom5, falcon::tuner::getCollInfo, falcon::tuner::end};
