// Room in a file that will be mapped.
#pragma once

#include <cstddef>

namespace falcon {

/// Takes the room now, so that no access to the mapping ever faults for want of memory. Signals do not interrupt it;
/// a limit of the size of files (ulimit -f) is EFBIG and not the signal that would end the process.
///
/// @return  0, or an error number
int reserveFile(int file, std::size_t bytes);

}  // namespace falcon
