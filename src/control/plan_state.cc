#include "control/plan_state.h"

#include "base/escaped.h"
#include "base/format.h"

namespace falcon::control {
namespace {

std::string arrayOf(const auto& values, const auto& toText) {
  std::string text;
  for (const auto& each : values) text += (text.empty() ? "" : ",") + toText(each);
  return "[" + text + "]";
}

}  // namespace

std::string lineOf(const PlanDecision& decision) {
  std::string text = fmt::format("{} {}: lost {:.1f} s, price {:.1f} s", decision.what, decision.strategy,
                                 decision.lossSeconds, decision.priceSeconds);
  if (decision.gain > 0) text += fmt::format(", gain {:.0f} %", 100 * decision.gain);
  return text + ": " + decision.text;
}

std::string toJson(const PlanState& state) {
  const auto quoted = [](const std::string& text) { return jsonString(text); };
  return fmt::format(
      R"({{"in_force":{},"waiting":{},"decisions":{}}})", arrayOf(state.inForce, quoted),
      arrayOf(state.waiting,
              [&](const WaitingPlan& plan) {
                return fmt::format(R"({{"strategy":{},"loss_s":{:.3f},"price_s":{:.3f},"text":{}}})",
                                   quoted(plan.strategy), plan.lossSeconds, plan.priceSeconds, quoted(plan.text));
              }),
      arrayOf(state.decisions, [&](const PlanDecision& each) {
        return fmt::format(
            R"({{"wall_time_s":{:.3f},"what":{},"strategy":{},"loss_s":{:.3f},"price_s":{:.3f},"gain":{:.3f},"text":{},"line":{}}})",
            each.wallTime, quoted(each.what), quoted(each.strategy), each.lossSeconds, each.priceSeconds, each.gain,
            quoted(each.text), quoted(lineOf(each)));
      }));
}

}  // namespace falcon::control
