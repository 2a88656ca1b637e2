#include "doctor/report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <set>

#include "base/median.h"
#include "doctor/spread.h"
#include "json_text.h"

namespace falcon::doctor {
namespace {

using nlohmann::ordered_json;

std::string cell(double value, const char* form = "{:.1f}") {
  return std::isnan(value) ? "-" : fmt::format(fmt::runtime(form), value);
}

std::string percent(double share) {
  return std::isnan(share) ? "-" : fmt::format("{:.0f} %", 100 * share);
}

ordered_json number(double value) {
  return std::isfinite(value) ? ordered_json(value) : ordered_json();
}

/// Median over the ranks of a figure's variation over the rounds.
double variationOf(const Measurements& measured, double RankSample::*figure) {
  std::vector<double> variations;
  for (std::size_t rank = 0; rank < measured.sites.size(); ++rank) {
    std::vector<double> values;
    for (const auto& round : measured.rounds)
      if (!std::isnan(round[rank].*figure)) values.push_back(round[rank].*figure);
    if (values.size() > 1) variations.push_back(variation(values));
  }
  return median(variations);
}

struct NamedFigure {
  const char* name;
  double RankSample::*figure;
};
constexpr NamedFigure repeated[] = {{"compute f32", &RankSample::gigaflops32},
                                    {"compute f64", &RankSample::gigaflops64},
                                    {"memory", &RankSample::memoryRate},
                                    {"loopback", &RankSample::loopbackRate}};

std::string gpuTable(const std::vector<GpuMeasurement>& gpus) {
  // Of those that could not be tested, notes tell.
  const auto tested = [](const GpuMeasurement& gpu) { return gpu.problem.empty(); };
  if (std::none_of(gpus.begin(), gpus.end(), tested)) return "";
  std::string text = fmt::format("\n{:>5}  {:<28}  {:<13}", "rank", "GPU (TFLOP/s, GB/s)", "PCI");
  for (int kind = 0; kind < falconGpuProducts; ++kind)
    text += fmt::format("  {:>6}", validate::nameOf(static_cast<FalconGpuProduct>(kind)));
  text += fmt::format("  {:>7}  {:>7}  {:>7}  {:>4}\n", "memory", "to", "from", "C");
  for (const GpuMeasurement& gpu : gpus) {
    if (!tested(gpu)) continue;
    const auto& sample = gpu.sample;
    text += fmt::format("{:>5}  {:<28}  {:<13}", gpu.rank, sample.score.device, sample.score.bus);
    for (const double rate : sample.score.operationsPerSecond) text += fmt::format("  {:>6}", cell(rate / 1e12));
    text += fmt::format("  {:>7}  {:>7}  {:>7}  {:>4}\n", cell(sample.score.copyRate / 1e9),
                        cell(sample.score.toDeviceRate / 1e9), cell(sample.score.fromDeviceRate / 1e9),
                        cell(sample.after.temperature.value_or(validate::unknown), "{:.0f}"));
  }
  return text;
}

ordered_json gpuObject(const GpuMeasurement& gpu) {
  const auto& [rank, sample, problem] = gpu;
  ordered_json one{{"rank", rank}, {"device", sample.score.device}, {"pci", sample.score.bus}};
  for (int kind = 0; kind < falconGpuProducts; ++kind)
    one[fmt::format("{}_flops", validate::nameOf(static_cast<FalconGpuProduct>(kind)))] =
        number(sample.score.operationsPerSecond[static_cast<std::size_t>(kind)]);
  one["memory_bytes_per_s"] = number(sample.score.copyRate);
  one["host_to_device_bytes_per_s"] = number(sample.score.toDeviceRate);
  one["device_to_host_bytes_per_s"] = number(sample.score.fromDeviceRate);
  one["temperature"] = number(sample.after.temperature.value_or(validate::unknown));
  one["clock_mhz"] = number(sample.after.clock.value_or(validate::unknown));
  one["power_w"] = number(sample.after.power.value_or(validate::unknown));
  one["held_back_by"] = validate::describeReasons(sample.after.reasons.value_or(0));
  one["problem"] = problem;
  return one;
}

}  // namespace

std::string table(const Measurements& measured, const Findings& findings) {
  std::set<std::string> nodes, hosts;
  for (const auto& place : measured.sites) nodes.insert(place.node), hosts.insert(place.host);
  std::string text = fmt::format("{} ranks on {} nodes ({} machines), {} rounds{}{}\n\n", measured.sites.size(),
                                 nodes.size(), hosts.size(), measured.rounds.size(),
                                 measured.product.empty() ? "" : "; matrix products by ", measured.product);
  text += fmt::format("{:>5}  {:<16}  {:<15}  {:>5}  {:>8}  {:>8}  {:>7}  {:>8}  {:>9}  {:>6}  {:>6}\n", "rank", "host",
                      "address", "cores", "f32", "f64", "memory", "loopback", "throttled", "waited", "stolen");
  text += fmt::format("{:>5}  {:<16}  {:<15}  {:>5}  {:>8}  {:>8}  {:>7}  {:>8}\n", "", "", "", "", "GFLOP/s",
                      "GFLOP/s", "GB/s", "GB/s");
  for (std::size_t i = 0; i < measured.sites.size(); ++i) {
    const RankSample rank = typicalOf(measured, static_cast<Rank>(i));
    text += fmt::format("{:>5}  {:<16}  {:<15}  {:>5}  {:>8}  {:>8}  {:>7}  {:>8}  {:>9}  {:>6}  {:>6}\n", i,
                        measured.sites[i].host, measured.sites[i].address, cell(rank.evidence.processors, "{:.0f}"),
                        cell(rank.gigaflops32), cell(rank.gigaflops64), cell(rank.memoryRate / 1e9),
                        cell(rank.loopbackRate / 1e9), percent(rank.evidence.throttled), percent(rank.evidence.waited),
                        percent(rank.evidence.stolen));
  }
  text += gpuTable(measured.gpus);
  const auto summaries = summarize(measured);
  if (!summaries.empty())
    text += fmt::format("\n{:<22}  {:>6}  {:>12}  {:>22}  {:>9}\n", "links", "number", "median MB/s", "slowest MB/s",
                        "variation");
  for (const TypeSummary& type : summaries)
    text += fmt::format("{:<22}  {:>6}  {:>12.1f}  {:>22}  {:>9}\n", type.type, type.links, type.medianRate / 1e6,
                        fmt::format("{:.1f} ({} -> {})", type.slowestRate / 1e6, type.slowest.from, type.slowest.to),
                        percent(type.variation));
  if (!measured.groups.empty())
    text += fmt::format("\n{:<22}  {:>6}  {:>15}  {:>9}\n", "all-reduce under", "ranks", "median ms", "variation");
  for (const GroupSample& group : measured.groups)
    text += fmt::format("{:<22}  {:>6}  {:>15.2f}  {:>9}\n", group.name, group.ranks.size(), 1e3 * median(group.times),
                        percent(variation(group.times)));
  if (measured.rounds.size() > 1) {
    text += "\nvariation over the rounds:";
    for (const auto& [name, figure] : repeated)
      text += fmt::format(" {} {}{}", name, percent(variationOf(measured, figure)),
                          figure == repeated[std::size(repeated) - 1].figure ? "\n" : ",");
  }
  text += '\n';
  for (const std::string& note : findings.notes) text += "note: " + note + '\n';
  for (const Finding& finding : findings.slow) text += "SLOW: " + finding.text + '\n';
  if (findings.healthy()) text += "healthy: nobody is slow\n";
  return text;
}

std::string json(const Measurements& measured, const Findings& findings) {
  ordered_json root{{"healthy", findings.healthy()},
                    {"product", measured.product.empty() ? ordered_json() : ordered_json(measured.product)},
                    {"rounds", measured.rounds.size()}};
  root["ranks"] = ordered_json::array();
  for (std::size_t i = 0; i < measured.sites.size(); ++i) {
    const RankSample rank = typicalOf(measured, static_cast<Rank>(i));
    const auto& place = measured.sites[i];
    root["ranks"].push_back({{"rank", i},
                             {"host", place.host},
                             {"node", place.node},
                             {"address", place.address},
                             {"processors", number(rank.evidence.processors)},
                             {"f32_gflops", number(rank.gigaflops32)},
                             {"f64_gflops", number(rank.gigaflops64)},
                             {"memory_bytes_per_s", number(rank.memoryRate)},
                             {"loopback_bytes_per_s", number(rank.loopbackRate)},
                             {"throttled", number(rank.evidence.throttled)},
                             {"waited", number(rank.evidence.waited)},
                             {"stolen", number(rank.evidence.stolen)},
                             {"ran", number(rank.evidence.ran)},
                             {"thermal_throttles", number(rank.evidence.thermalThrottles)},
                             {"power", number(rank.evidence.power)}});
  }
  root["gpus"] = ordered_json::array();
  for (const GpuMeasurement& gpu : measured.gpus) root["gpus"].push_back(gpuObject(gpu));
  root["links"] = ordered_json::array();
  for (const auto& link : measured.links)
    root["links"].push_back({{"from", link.link.from},
                             {"to", link.link.to},
                             {"type", typeOf(link, measured.sites)},
                             {"status", nameOf(link.status)},
                             {"bytes_per_s", number(link.bytesPerSecond())},
                             {"latency_s", link.latency >= 0 ? ordered_json(link.latency) : ordered_json()}});
  root["link_types"] = ordered_json::array();
  for (const TypeSummary& type : summarize(measured))
    root["link_types"].push_back({{"type", type.type},
                                  {"links", type.links},
                                  {"median_bytes_per_s", number(type.medianRate)},
                                  {"slowest", {type.slowest.from, type.slowest.to}},
                                  {"slowest_bytes_per_s", number(type.slowestRate)},
                                  {"variation", number(type.variation)}});
  root["switches"] = ordered_json::array();
  for (const GroupSample& group : measured.groups)
    root["switches"].push_back({{"name", group.name},
                                {"ranks", group.ranks},
                                {"all_reduce_s", number(median(group.times))},
                                {"variation", number(variation(group.times))}});
  for (const auto& [name, figure] : repeated) root["variation"][name] = number(variationOf(measured, figure));
  root["slow"] = ordered_json::array();
  for (const Finding& finding : findings.slow) {
    ordered_json one{{"what", nameOf(finding.subject)}};
    if (finding.subject == Subject::link)
      one["from"] = finding.link.from, one["to"] = finding.link.to;
    else if (finding.subject == Subject::group)
      one["name"] = finding.group;
    else
      one["rank"] = finding.rank;
    one["slowdown"] = finding.slowdown > 0 ? ordered_json(finding.slowdown) : ordered_json();
    one["cause"] = nameOf(finding.cause);
    one["text"] = finding.text;
    root["slow"].push_back(std::move(one));
  }
  root["notes"] = findings.notes;
  return tools::jsonText(root, 2) + "\n";
}

}  // namespace falcon::doctor
