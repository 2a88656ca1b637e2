// Two threads that each write a word and then read the other's: so that one of them at least sees the other's, both
// need a fence in between. Where one does it in every call and the other now and then, the second one can bear it
// alone: it asks the kernel for a fence on every processor (membarrier).
#pragma once

#include <atomic>

namespace falcon {

/// From now on this process's threads pass the heavy fences of any process, and it can make some. False: the kernel
/// does not do that here; then all who would rely on it use full fences.
bool takePartInHeavyFences();

/// Between the own store and the load of the other's word. `relies`: all who are concerned take part.
inline void lightFence(bool relies) {
  if (relies) [[likely]]
    std::atomic_signal_fence(std::memory_order_seq_cst);
  else
    std::atomic_thread_fence(std::memory_order_seq_cst);
}

/// The same on the side that bears it, in some microseconds. Only a full fence for those who do not take part.
void heavyFence();

}  // namespace falcon
