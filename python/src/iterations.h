// Where iterations begin, and who in Python is told of their ends: ncclFalconIterationCallback.
#pragma once

#include <nanobind/nanobind.h>

#include <cstdint>

#include "communicator.h"

namespace falcon::python {

/// The function that is called where an iteration of a communicator ends, from the thread that is in iterationBegin().
/// One for a communicator, and must live as long as that.
class IterationHook {
 public:
  /// function(iteration, next, seconds, health, wanted, changed, plan), where plan is as iterationBegin() gives it;
  /// None: nobody is told. Throws CallError.
  void registerFor(const Communicator& job, nanobind::object function, bool restarts);
  /// The communicator is closed: nobody is told any more.
  void forget() { function_ = nanobind::none(); }

 private:
  static void hear(const ncclFalconIterationEnd_t* end, void* context);

  nanobind::object function_ = nanobind::none();
};

/// (version, micro-batches, first, weight). What the function raises is raised here, once the plan is known. Throws
/// CallError.
nanobind::tuple iterationBegin(const Communicator& job, std::uint64_t iteration);

}  // namespace falcon::python
