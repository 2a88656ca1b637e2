// Version 7 of NCCL's tuner plugin interface (2.32.6): constants of one compute capability more.
#pragma once

#include "plugin/tuner/tuner_v6.h"

namespace falcon::plugin {

using TunerConstantsV7 = TunerConstants<5>;
using TunerV7 = TunerFrom6<TunerConstantsV7>;

}  // namespace falcon::plugin
