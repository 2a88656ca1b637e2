#include "validate/gpu_sample.h"

#include "base/wire.h"

namespace falcon::validate {
namespace {

template <class Value>
void put(WireWriter& out, const std::optional<Value>& value) {
  out.put(value.has_value());
  if constexpr (std::is_same_v<Value, Nanoseconds>)
    out.put(value.value_or(Value{}).count());
  else
    out.put(value.value_or(Value{}));
}

template <class Value>
void get(WireReader& in, std::optional<Value>& value) {
  const bool known = in.get<bool>();
  if constexpr (std::is_same_v<Value, Nanoseconds>)
    value = Nanoseconds(in.get<Nanoseconds::rep>());
  else
    value = in.get<Value>();
  if (!known) value.reset();
}

/// Both directions go through the same list of fields.
template <class State, class Each>
void eachField(State& state, Each each) {
  each(state.clock), each(state.highestClock), each(state.temperature), each(state.slowdownTemperature);
  each(state.power), each(state.powerLimit), each(state.reasons), each(state.heldByPower), each(state.heldByThermal);
  each(state.uncorrected), each(state.lastXid);
}
template <class Score, class Each>
void eachFigure(Score& score, Each each) {
  for (auto& rate : score.operationsPerSecond) each(rate);
  each(score.copyRate), each(score.toDeviceRate), each(score.fromDeviceRate);
}

class LiveTester final : public GpuTester {
 public:
  explicit LiveTester(const Clock& clock) : clock_(clock) {}

  Result<GpuSample> run(int device, Nanoseconds span) override {
    if (!bench_) {
      auto opened = openGpuBenchmark();
      if (!opened) return opened.error();
      bench_ = std::move(*opened);
      if (auto management = openGpuManagement()) management_ = std::move(*management);
    }
    // A short run says where the device is, and loads the kernels: neither belongs to the test.
    const auto found = bench_->run(device, 1ms);
    if (!found) return found.error();
    GpuSample sample;
    sample.before = stateOf(found->bus);
    const auto start = clock_.now();
    auto score = bench_->run(device, span);
    if (!score) return score.error();
    sample.span = clock_.now() - start;
    sample.after = stateOf(found->bus);
    sample.score = std::move(*score);
    return sample;
  }

 private:
  /// As far as anybody tells: a test without it is still a test.
  GpuState stateOf(const std::string& bus) {
    if (!management_ || bus.empty()) return {};
    const auto state = management_->stateOf(bus);
    return state ? *state : GpuState{};
  }

  const Clock& clock_;
  std::unique_ptr<const GpuBenchmark> bench_;
  std::unique_ptr<GpuManagement> management_;
};

}  // namespace

std::string encode(const GpuSample& sample) {
  WireWriter out;
  out.put(std::string_view(sample.score.device)).put(std::string_view(sample.score.bus)).put(sample.span.count());
  eachFigure(sample.score, [&](double figure) { out.put(figure); });
  for (const GpuState* state : {&sample.before, &sample.after})
    eachField(*state, [&](const auto& field) { put(out, field); });
  return out.take();
}

Result<GpuSample> decodeGpuSample(std::string_view bytes) {
  WireReader in(bytes);
  GpuSample sample;
  sample.score.device = in.getString();
  sample.score.bus = in.getString();
  sample.span = Nanoseconds(in.get<Nanoseconds::rep>());
  eachFigure(sample.score, [&](double& figure) { figure = in.get<double>(); });
  for (GpuState* state : {&sample.before, &sample.after}) eachField(*state, [&](auto& field) { get(in, field); });
  if (!in.finished()) return Error::remote("{} bytes are no measurement of a GPU", bytes.size());
  return sample;
}

std::unique_ptr<GpuTester> makeGpuTester(const Clock& clock) {
  return std::make_unique<LiveTester>(clock);
}

}  // namespace falcon::validate
