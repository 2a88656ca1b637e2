// The one way in which the front speaks.
#pragma once

namespace falcon::front {

/// One line in NCCL's format on standard error; each text once a process.
void say(const char* text);

}  // namespace falcon::front
