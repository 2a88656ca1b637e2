// A JSON Schema checker for the few words that our schemas use. A word that it does not know is an error: a schema that
// is only half understood would let everything pass.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace falcon::harness {

/// "" where the value is as the schema says, otherwise what is wrong and where.
std::string violation(const nlohmann::json& value, const nlohmann::json& schema, const std::string& at = "");

}  // namespace falcon::harness
