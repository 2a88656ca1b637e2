// How long this process has been running.
#pragma once

namespace falcon {

/// By the kernel's account, to 10 ms; 0 where it does not tell.
double secondsSinceProcessStart();

}  // namespace falcon
