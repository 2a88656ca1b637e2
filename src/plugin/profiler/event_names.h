// Types by the names that profilers are told, and what such names mean. Functions have base's names. Pure.
#pragma once

#include <optional>
#include <string_view>

#include "base/call.h"

namespace falcon::plugin {

/// "ncclFloat32" ...
const char* profilerNameOf(DataType type);

/// Nothing: we have no such thing.
std::optional<Operation> operationOf(std::string_view name);
std::optional<DataType> dataTypeOf(std::string_view name);

}  // namespace falcon::plugin
