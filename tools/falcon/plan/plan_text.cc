#include "plan/plan_text.h"

#include <fmt/format.h>

#include <cmath>
#include <ctime>
#include <filesystem>

#include "base/input_file.h"
#include "jobs/job_files.h"
#include "json_text.h"
#include "print.h"

namespace falcon::plan {
namespace {

using nlohmann::json;

constexpr std::size_t fileLimit = std::size_t{1} << 20;

json listIn(const json& state, const char* name) {
  const auto found = state.find(name);
  return found != state.end() && found->is_array() ? *found : json::array();
}

std::string wordIn(const json& entry, const char* name) {
  const auto found = entry.is_object() ? entry.find(name) : entry.end();
  return entry.is_object() && found != entry.end() && found->is_string() ? found->get<std::string>() : "";
}

double numberIn(const json& entry, const char* name) {
  const auto found = entry.is_object() ? entry.find(name) : entry.end();
  return entry.is_object() && found != entry.end() && found->is_number() ? found->get<double>() : 0;
}

std::string timeOfDay(double wallTime) {
  const auto when = static_cast<std::time_t>(wallTime);
  std::tm local{};
  char text[16] = "";
  if (localtime_r(&when, &local)) std::strftime(text, sizeof text, "%H:%M:%S", &local);
  return text;
}

}  // namespace

std::string textOf(const std::string& job, const json& state) {
  std::string text = fmt::format("job {}\n", job);
  const json inForce = listIn(state, "in_force"), waiting = listIn(state, "waiting");
  for (const json& each : inForce)
    if (each.is_string()) text += fmt::format("in force: {}\n", each.get<std::string>());
  if (inForce.empty()) text += "in force: nothing\n";
  for (const json& each : waiting)
    text += fmt::format("waits:    {}: lost {:.1f} s of its price of {:.1f} s: {}\n", wordIn(each, "strategy"),
                        numberIn(each, "loss_s"), numberIn(each, "price_s"), wordIn(each, "text"));
  const json decisions = listIn(state, "decisions");
  text += decisions.empty() ? "decided:  nothing so far\n" : "decided:\n";
  for (const json& each : decisions)
    text += fmt::format("  {}  {}\n", timeOfDay(numberIn(each, "wall_time_s")), wordIn(each, "line"));
  return text;
}

int showPlan(const std::string& name, bool asJson) {
  const auto job = jobs::chooseJob("plan", name);
  if (!job) return 1;
  const std::filesystem::path path = std::filesystem::path(job->folder) / "plan.json";
  std::error_code ignored;
  json state = json::object();
  if (std::filesystem::exists(path, ignored)) {
    const auto bytes = readInputFile(path, fileLimit);
    if (!bytes) {
      tools::print(stderr, "falcon plan: {}\n", bytes.error().message());
      return 1;
    }
    state = json::parse(*bytes, nullptr, false);
    if (!state.is_object()) {
      tools::print(stderr, "falcon plan: {} is no JSON object; the job's Falcon may be of another version\n",
                   path.string());
      return 1;
    }
  }
  state["job"] = job->name;
  tools::printLines(stdout, asJson ? tools::jsonText(state, 2) + "\n" : textOf(job->name, state));
  return 0;
}

}  // namespace falcon::plan
