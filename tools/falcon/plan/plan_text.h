// What the controller of a job leaves of its plans (src/control/plan_state.h), for people.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace falcon::plan {

/// The plan in force, what waits and how much of its price is lost so far, and the last decisions. What is missing in
/// the file is left out.
std::string textOf(const std::string& job, const nlohmann::json& state);

/// Prints it. 0; 1: there is no such job, or its file cannot be read.
int showPlan(const std::string& job, bool asJson);

}  // namespace falcon::plan
