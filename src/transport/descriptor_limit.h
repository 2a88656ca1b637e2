// The process's limit of open files, which large communicators meet.
#pragma once

#include <cstddef>
#include <string>

#include "base/result.h"

namespace falcon::transport {

/// Room for `more` descriptors beside those that are open: raises the soft limit where it must, as far as the hard one
/// allows. A system error that says what to do where that is not enough; `what` is who needs them.
Status reserveDescriptors(std::size_t more, const std::string& what);

}  // namespace falcon::transport
