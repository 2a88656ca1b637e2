// A folder in a place where everybody may make one, /dev/shm above all: whose it is decides whether it is trusted.
#pragma once

#include <string>

#include "base/owned.h"
#include "base/result.h"

namespace falcon {

/// A folder of this user's that nobody else can write to; no link. An own one with wider rights gets 0700.
/// Errors: it is not there, a link or no folder, or another user's; they name the path, the owner and the remedy.
Result<FileDescriptor> openOwnFolder(const std::string& path);

/// The same; made where it is not there, for its owner to use whatever the umask says.
Result<FileDescriptor> makeOwnFolder(const std::string& path);

/// Of a file that was just made: its owner may read and write it, whatever the umask says. Without that it would be in
/// the way of the next job, and unseen by `falcon`.
void keepOwnersRights(int file);

}  // namespace falcon
