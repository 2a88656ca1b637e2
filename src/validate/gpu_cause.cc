#include "validate/gpu_cause.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "base/format.h"
#include "base/median.h"
#include "validate/figures.h"

namespace falcon::validate {
namespace {

constexpr double clearlyHeldBack =
    0.05;  // of the test's time: what is held back for longer makes a device 1.2 times slower
constexpr std::size_t fewestPeers = 3;

struct Figure {
  const char* name;
  double value;  // work or bytes per second; NaN: not measured
  double scale;  // to the unit
  const char* unit;
  bool isCompute;
};

std::vector<Figure> figuresOf(const GpuScore& score) {
  std::vector<Figure> figures;
  for (std::size_t i = 0; i < score.operationsPerSecond.size(); ++i)
    figures.push_back({nameOf(static_cast<FalconGpuProduct>(i)), score.operationsPerSecond[i], 1e-12, "TFLOP/s", true});
  figures.push_back({"copies in its memory", score.copyRate, 1e-9, "GB/s", false});
  figures.push_back({"host to device", score.toDeviceRate, 1e-9, "GB/s", false});
  figures.push_back({"device to host", score.fromDeviceRate, 1e-9, "GB/s", false});
  return figures;
}
constexpr std::size_t copyFigure = falconGpuProducts;

/// Of the time between the states; 0 where nobody tells.
double share(std::optional<Nanoseconds> before, std::optional<Nanoseconds> after, Nanoseconds span) {
  if (!before || !after || span <= 0ns) return 0;
  return std::clamp(seconds(*after - *before) / seconds(span), 0.0, 1.0);
}
double heatShare(const GpuSample& sample) {
  return share(sample.before.heldByThermal, sample.after.heldByThermal, sample.span);
}
double powerShare(const GpuSample& sample) {
  return share(sample.before.heldByPower, sample.after.heldByPower, sample.span);
}

std::string errorsOf(const GpuSample& sample) {
  if (sample.after.lastXid.value_or(0) != 0) return fmt::format("the driver reported XID {}", *sample.after.lastXid);
  if (sample.after.uncorrected.value_or(0) > sample.before.uncorrected.value_or(0))
    return fmt::format("{} memory errors that could not be corrected",
                       *sample.after.uncorrected - sample.before.uncorrected.value_or(0));
  return "";
}

std::string thermometer(const GpuState& state) {
  if (!state.temperature) return "";
  std::string text = fmt::format("; {:.0f} C", *state.temperature);
  if (state.slowdownTemperature) text += fmt::format(" of {:.0f}", *state.slowdownTemperature);
  return text;
}

/// What devices of one name usually reach; worked out once for all of them, since the job is held meanwhile.
struct Peers {
  std::size_t count = 0;
  std::vector<double> usual;  ///< by figure; NaN where none was measured
  double usualHeat = 0, usualPower = 0;

  bool enough() const { return count >= fewestPeers; }
};

Peers compare(const std::vector<const GpuSample*>& samples) {
  std::vector<std::vector<double>> values;
  std::vector<double> heat, power;
  for (const GpuSample* sample : samples) {
    const auto figures = figuresOf(sample->score);
    values.resize(figures.size());
    for (std::size_t i = 0; i < figures.size(); ++i)
      if (!std::isnan(figures[i].value)) values[i].push_back(figures[i].value);
    heat.push_back(heatShare(*sample));
    power.push_back(powerShare(*sample));
  }
  Peers peers{samples.size(), {}, median(std::move(heat)), median(std::move(power))};
  for (auto& each : values) peers.usual.push_back(median(std::move(each)));
  return peers;
}

void explain(const GpuSample& sample, const Peers& peers, bool memoryAlone, GpuJudgement& judgement) {
  const double heat = heatShare(sample), power = powerShare(sample);
  const std::string reasons = describeReasons(sample.after.reasons.value_or(0));
  const auto because = [&](Cause cause, const std::string& text) {
    judgement.cause = cause;
    judgement.evidence += "; " + text;
    if (!reasons.empty()) judgement.evidence += " (" + reasons + ")";
  };
  if (const std::string errors = errorsOf(sample); !errors.empty()) return because(Cause::hardware, errors);
  if (heat > peers.usualHeat + clearlyHeldBack)
    return because(Cause::thermal, fmt::format("heat held its clocks back for {:.0f} % of the time{}", 100 * heat,
                                               thermometer(sample.after)));
  if (power > peers.usualPower + clearlyHeldBack)
    return because(Cause::powerCap,
                   fmt::format("its power limit held its clocks back for {:.0f} % of the time", 100 * power));
  if (memoryAlone) return because(Cause::memory, "its products are as fast as its peers'");
  because(Cause::hardware, "nothing that the driver tells holds it back");
}

GpuJudgement judgeOne(const GpuSample& sample, const Peers& peers) {
  GpuJudgement judgement;
  bool slowProducts = false, slowCopies = false;
  const auto figures = figuresOf(sample.score);
  for (std::size_t i = 0; i < figures.size(); ++i) {
    const double usual = peers.usual[i];
    const double slowdown = usual / figures[i].value;
    if (!(slowdown >= slowFactor)) continue;
    (figures[i].isCompute ? slowProducts : slowCopies) |= figures[i].isCompute || i == copyFigure;
    if (slowdown <= judgement.slowdown) continue;
    judgement.slowdown = slowdown;
    judgement.evidence =
        fmt::format("{}: {:.3g} {}, its peers {:.3g}: {:.2f} times slower", figures[i].name,
                    figures[i].value * figures[i].scale, figures[i].unit, usual * figures[i].scale, slowdown);
  }
  judgement.slow = peers.enough() && judgement.slowdown >= slowFactor;
  if (judgement.slow) {
    explain(sample, peers, slowCopies && !slowProducts, judgement);
  } else {
    judgement.evidence = errorsOf(sample);
  }
  return judgement;
}

}  // namespace

std::vector<GpuJudgement> judgeGpus(const std::vector<GpuSample>& samples) {
  std::map<std::string, std::vector<const GpuSample*>> models;
  for (const GpuSample& sample : samples) models[sample.score.device].push_back(&sample);
  std::map<std::string, Peers> peers;
  for (const auto& [device, same] : models) peers.emplace(device, compare(same));
  std::vector<GpuJudgement> judgements;
  judgements.reserve(samples.size());
  for (const GpuSample& sample : samples) judgements.push_back(judgeOne(sample, peers.at(sample.score.device)));
  return judgements;
}

}  // namespace falcon::validate
