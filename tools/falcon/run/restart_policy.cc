#include "run/restart_policy.h"

#include <nlohmann/json.hpp>
#include <numeric>

namespace falcon::tools {

using nlohmann::json;

Result<RestartRequest> parseRestartRequest(const std::string& text) {
  const json object = json::parse(text, nullptr, false);
  if (!object.is_object()) return Error::invalidArgument("it is no JSON object");
  if (const auto version = object.find("v"); version == object.end() || *version != 1)
    return Error::invalidArgument("its version is not 1");
  RestartRequest request;
  const auto leaveOut = object.find("leave_out");
  if (leaveOut == object.end() || !leaveOut->is_array()) return Error::invalidArgument("leave_out is no list");
  for (const json& each : *leaveOut) {
    const auto rank = each.is_object() ? each.find("rank") : each.end();
    if (!each.is_object() || rank == each.end() || !rank->is_number_integer() || *rank < 0 || *rank > 1 << 20)
      return Error::invalidArgument("an entry of leave_out has no rank");
    request.leaveOut.push_back(rank->get<Rank>());
  }
  const auto checkpoint = object.find("checkpoint");
  if (checkpoint != object.end() && checkpoint->is_object()) {
    const auto iteration = checkpoint->find("iteration");
    if (iteration == checkpoint->end() || !iteration->is_number_unsigned())
      return Error::invalidArgument("the checkpoint has no iteration");
    request.checkpoint = fmt::format("the checkpoint of iteration {}", iteration->get<std::uint64_t>());
  }
  return request;
}

RestartPolicy::RestartPolicy(int ranks, int restarts, int spares)
    : ranks_(ranks), restarts_(restarts), spares_(spares), places_(static_cast<std::size_t>(ranks)) {
  std::iota(places_.begin(), places_.end(), 0);
}

RestartPolicy::Next RestartPolicy::after(const AttemptEnd& end) {
  if (end.code == 0 || end.asked || restarts_ == 0) return {};
  const std::string how = end.request ? fmt::format("the job asked to be restarted (code {})", end.code)
                                      : fmt::format("the job ended by itself (code {})", end.code);
  if (restarted_ == restarts_) return {false, fmt::format("{}, and was restarted {} times already", how, restarted_)};
  ++restarted_;
  std::string text = fmt::format("{}: restart {} of {}", how, restarted_, restarts_);
  if (end.request && !end.request->checkpoint.empty()) text += ", from " + end.request->checkpoint;
  if (!end.request || end.request->leaveOut.empty()) return {true, text + ", all in their places"};
  return {true, text + replace(end.request->leaveOut)};
}

std::string RestartPolicy::replace(const std::vector<Rank>& leaveOut) {
  std::string text;
  for (const Rank rank : leaveOut) {
    if (rank >= ranks_) {
      text += fmt::format("; there is no rank {}", rank);
    } else if (used_ == spares_) {
      text += fmt::format("; rank {} keeps its place: no spare is left of {}", rank, spares_);
    } else {
      text += fmt::format("; spare {} takes the place of rank {}", used_, rank);
      places_[static_cast<std::size_t>(rank)] = ranks_ + used_++;
    }
  }
  return text;
}

}  // namespace falcon::tools
