// Whether there is a GPU, without a word to CUDA: a process that has initialised CUDA may not fork workers that use it.
#pragma once

#include <string>

namespace falcon::gpu {

/// Whether the kernel's driver shows a GPU, and CUDA_VISIBLE_DEVICES does not hide all. A guess: CUDA may see none.
/// @param root     where /dev and /proc are; "" but for tests
/// @param visible  CUDA_VISIBLE_DEVICES; null: not set
bool devicesSeemPresent(const std::string& root, const char* visible);

}  // namespace falcon::gpu
