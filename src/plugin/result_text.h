// A plugin's result code in words.
#pragma once

#include <string>

#include "plugin/plugin_abi.h"

namespace falcon::plugin {

/// As people read it: "2 (system error)".
std::string resultText(ResultCode result);

}  // namespace falcon::plugin
