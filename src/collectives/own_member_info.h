// What this process publishes about itself at init.
#pragma once

#include <string>

#include "collectives/member_info.h"

namespace falcon::collectives {

/// This process's own. Errors: no memory can be shared.
Result<MemberInfo> ownMemberInfo(transport::Reactor& reactor, int device, std::string extra);

}  // namespace falcon::collectives
