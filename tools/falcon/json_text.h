// JSON as `falcon` writes it. Names in it (of jobs, hosts, communicators, ranges) are what others chose.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>

namespace falcon::tools {

/// ASCII, so that a terminal finds nothing in it to obey; each byte that is part of no UTF-8 character is U+FFFD.
/// @param indent  blanks for each level; -1: all in one line
template <class Json>
std::string jsonText(const Json& value, int indent = -1) {
  return value.dump(indent, ' ', true, Json::error_handler_t::replace);
}

/// What did not happen, or is not known, is null.
template <class Json = nlohmann::ordered_json, class Value>
Json orNull(const std::optional<Value>& value) {
  return value ? Json(*value) : Json();
}

}  // namespace falcon::tools
