#include "iterations.h"

#include <exception>
#include <utility>

#include "library.h"

namespace falcon::python {

namespace nb = nanobind;

namespace {

/// No exception of Python's may go through the library, which knows none: it waits beside it.
thread_local std::exception_ptr raised;

}  // namespace

void IterationHook::registerFor(const Communicator& job, nb::object function, bool restarts) {
  const bool listens = !function.is_none();
  check(library().ncclFalconIterationCallback(job.handle().get(), listens ? &IterationHook::hear : nullptr, this,
                                              restarts ? NCCL_FALCON_CALLBACK_RESTARTS : 0));
  function_ = std::move(function);
}

void IterationHook::hear(const ncclFalconIterationEnd_t* end, void* context) {
  const nb::gil_scoped_acquire locked;
  try {
    const nb::object function = static_cast<IterationHook*>(context)->function_;  // it may register another one
    if (function.is_none()) return;
    function(end->iteration, end->next, end->seconds, end->health, end->wanted, end->changed,
             nb::make_tuple(end->planVersion, end->microBatches, end->firstMicroBatch, end->gradientWeight));
  } catch (...) {
    raised = std::current_exception();
  }
}

nb::tuple iterationBegin(const Communicator& job, std::uint64_t iteration) {
  ncclFalconPlan_t plan{sizeof plan, 0, 0, 0, 0};
  {
    const nb::gil_scoped_release unlocked;
    check(library().ncclFalconIterationBegin(job.handle().get(), iteration, &plan));
  }
  if (raised) std::rethrow_exception(std::exchange(raised, nullptr));
  return nb::make_tuple(plan.version, plan.microBatches, plan.firstMicroBatch, plan.gradientWeight);
}

}  // namespace falcon::python
