#include "plugin/tuner/tuner_v5.h"

#include "plugin/tuner/tuner_adapter.h"

namespace falcon::plugin {

std::unique_ptr<TunerCalls> adaptTunerV5(const void* symbol) {
  return std::make_unique<TunerAdapterFrom5<TunerV5, TunerConstantsV5, 5>>(symbol);
}

}  // namespace falcon::plugin
