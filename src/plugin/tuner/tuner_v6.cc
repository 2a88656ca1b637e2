#include "plugin/tuner/tuner_v6.h"

#include "plugin/tuner/tuner_adapter.h"

namespace falcon::plugin {

std::unique_ptr<TunerCalls> adaptTunerV6(const void* symbol) {
  return std::make_unique<TunerAdapterFrom5<TunerV6, TunerConstantsV5, 6>>(symbol);
}

}  // namespace falcon::plugin
