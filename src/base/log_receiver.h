// Who gets the log's lines, where they are not written by this library itself.
#pragma once

#include <string_view>

#include "base/log.h"

namespace falcon::log {

using Receiver = void (*)(Level level, std::string_view message);

/// From now on `receiver` gets the lines, from INFO on, and nothing is written here: a library that is a guest in
/// another one (a net plugin) logs where that does, which decides by itself what is shown. Called from any thread, for
/// as long as the process lives; null: to nobody else again.
void handOver(Receiver receiver);

}  // namespace falcon::log
