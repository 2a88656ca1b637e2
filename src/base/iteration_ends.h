// When an iteration has ended, and what its callback is told (ncclFalconIterationCallback). Without anything of C++'s
// library, since the front of the preload library has none of it.
#pragma once

#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

namespace falcon {

/// Nanoseconds of CLOCK_MONOTONIC. By the system call: libc's function is younger than what the front may need.
inline long long steadyNanoseconds() {
  timespec now{};
  syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &now);
  return now.tv_sec * 1'000'000'000LL + now.tv_nsec;
}

/// What is another in an iteration than in the one before: NCCL_FALCON_CHANGED_...
enum : unsigned int { changedPlan = 1, changedMicroBatches = 2, changedRole = 4 };

/// What an iteration is begun with.
struct IterationBegun {
  unsigned long long iteration;
  long long entered;  ///< when ncclFalconIterationBegin was called, nanoseconds
  unsigned long long planVersion;
  int microBatches, firstMicroBatch;
  double gradientWeight;
  int role;
};

/// The iterations of one rank of a communicator. All zeros: none was begun, and nobody is to be told. Whoever uses it
/// takes care that one thread does at a time, and calls nobody meanwhile.
/// @tparam End  ncclFalconIterationEnd_t
template <class End>
struct IterationEnds {
  using Callback = void (*)(const End* end, void* context);

  /// Whom to tell of an end, and what; no callback: nobody.
  struct Due {
    End end;
    Callback callback;
    void* context;
  };
  /// Which iteration ends, before its successor's plan is known; not there: none that anybody is to be told of.
  struct Ended {
    bool isThere;
    unsigned long long iteration;
    unsigned int flags;  ///< that the callback was registered with
  };

  void tell(Callback whom, void* with, unsigned int how) {
    callback = whom;
    context = with;
    flags = how;
  }

  Ended endedBy(unsigned long long iteration) const {
    return {callback && isBegun && !isTelling && iteration != last.iteration, last.iteration, flags};
  }

  /// The iteration begins: its plan is known. Where somebody is to be told of the end of the one before, told() is to
  /// follow. The caller fills in the health and what is wanted.
  Due begin(const IterationBegun& next, const Ended& ended) {
    Due due{};
    // Removed by another thread meanwhile, while this one waited for its plan.
    if (ended.isThere && callback && !isTelling) {
      due.callback = callback;
      due.context = context;
      due.end.size = sizeof(End);
      due.end.iteration = last.iteration;
      due.end.next = next.iteration;
      due.end.seconds = static_cast<double>(next.entered - beganAt) * 1e-9;
      due.end.microBatches = next.microBatches;
      due.end.firstMicroBatch = next.firstMicroBatch;
      due.end.gradientWeight = next.gradientWeight;
      due.end.planVersion = next.planVersion;
      due.end.changed = changedIn(next);
      isTelling = true;
    }
    last = next;
    isBegun = true;
    beganAt = steadyNanoseconds();
    return due;
  }

  /// Whoever was due has returned: what it did is no part of the iteration.
  void told() {
    isTelling = false;
    beganAt = steadyNanoseconds();
  }

  Callback callback;
  void* context;
  unsigned int flags;
  bool isBegun, isTelling;
  IterationBegun last;
  long long beganAt;  ///< when the last one's plan was given, nanoseconds

 private:
  unsigned int changedIn(const IterationBegun& next) const {
    const bool others = next.microBatches != last.microBatches || next.firstMicroBatch != last.firstMicroBatch ||
                        next.gradientWeight != last.gradientWeight;
    return (next.planVersion != last.planVersion ? changedPlan : 0u) | (others ? changedMicroBatches : 0u) |
           (next.role != last.role ? changedRole : 0u);
  }
};

}  // namespace falcon
