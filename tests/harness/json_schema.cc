#include "harness/json_schema.h"

#include <algorithm>

namespace falcon::harness {
namespace {

using nlohmann::json;

bool hasType(const json& value, const std::string& type) {
  if (type == "object") return value.is_object();
  if (type == "array") return value.is_array();
  if (type == "string") return value.is_string();
  if (type == "boolean") return value.is_boolean();
  if (type == "number") return value.is_number();
  if (type == "integer") return value.is_number_integer();
  return false;
}

std::string objectViolation(const json& value, const json& schema, const std::string& at) {
  for (const json& name : schema.value("required", json::array()))
    if (!value.contains(name.get<std::string>())) return at + " lacks " + name.dump();
  const json known = schema.value("properties", json::object());
  for (const auto& [name, member] : value.items()) {
    if (!known.contains(name)) {
      if (schema.value("additionalProperties", true)) continue;
      return at + " has an unknown key " + name;
    }
    if (auto wrong = violation(member, known[name], at + "/" + name); !wrong.empty()) return wrong;
  }
  return "";
}

}  // namespace

std::string violation(const json& value, const json& schema, const std::string& at) {
  for (const auto& [word, rule] : schema.items()) {
    if (word == "$schema" || word == "title" || word == "description") continue;
    if (word == "required" || word == "properties" || word == "additionalProperties") continue;  // below
    bool right = false;
    if (word == "type")
      right = hasType(value, rule.get<std::string>());
    else if (word == "const")
      right = value == rule;
    else if (word == "enum")
      right = std::find(rule.begin(), rule.end(), value) != rule.end();
    else if (word == "minimum")
      right = value.is_number() && value.get<double>() >= rule.get<double>();
    else if (word == "maximum")
      right = value.is_number() && value.get<double>() <= rule.get<double>();
    else if (word == "oneOf")
      right = std::count_if(rule.begin(), rule.end(),
                            [&](const json& choice) { return violation(value, choice, at).empty(); }) == 1;
    else if (word == "items")
      right = !value.is_array() || std::all_of(value.begin(), value.end(), [&, &rule = rule](const json& item) {
        return violation(item, rule, at).empty();
      });
    else
      return "the schema has a word that this checker does not know: " + word;
    if (!right) return at + ": " + value.dump() + " is not as " + word + " says: " + rule.dump();
  }
  return value.is_object() ? objectViolation(value, schema, at) : "";
}

}  // namespace falcon::harness
