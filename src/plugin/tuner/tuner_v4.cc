#include "plugin/tuner/tuner_v4.h"

#include "plugin/tuner/tuner_adapter.h"

namespace falcon::plugin {
namespace {

class TunerAdapterV4 final : public TunerAdapter<TunerV4, 4> {
 public:
  using TunerAdapter::TunerAdapter;

  ResultCode init(const TunedCommunicator& communicator, void** context) const override {
    return plugin_.init(static_cast<std::size_t>(communicator.ranks), static_cast<std::size_t>(communicator.nodes),
                        logForPlugin, context);
  }
  ResultCode finalize(void* context) const override { return plugin_.destroy(context); }

 private:
  bool hasEnd() const override { return plugin_.destroy != nullptr; }
};

}  // namespace

std::unique_ptr<TunerCalls> adaptTunerV4(const void* symbol) {
  return std::make_unique<TunerAdapterV4>(symbol);
}

}  // namespace falcon::plugin
