#include "plugin/tuner/tuner_v7.h"

#include "plugin/tuner/tuner_adapter.h"

namespace falcon::plugin {

std::unique_ptr<TunerCalls> adaptTunerV7(const void* symbol) {
  return std::make_unique<TunerAdapterFrom5<TunerV7, TunerConstantsV7, 7>>(symbol);
}

}  // namespace falcon::plugin
