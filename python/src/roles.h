// Ranks that exchange their roles: Python's part of ncclFalconRegisterReshape.
#pragma once

#include <nanobind/nanobind.h>

#include <memory>
#include <string>
#include <vector>

#include "communicator.h"

namespace falcon::python {

/// The functions that the library calls in an exchange, from the thread that is in iteration_begin() or reshape(),
/// which has let the interpreter go meanwhile. Must live as long as the communicator that they are registered for.
class RoleHooks {
 public:
  /// prepare(role) gives a list of (name, address, bytes), or None where it cannot; commit(role), abandon(role).
  RoleHooks(nanobind::object prepare, nanobind::object commit, nanobind::object abandon);

  /// `groups`: None where there is none. Throws CallError.
  void registerFor(const Communicator& job, const nanobind::list& groups);

 private:
  static ncclResult_t prepare(void* context, int role, const ncclFalconBuffer_t** buffers, size_t* count);
  static void commit(void* context, int role);
  static void abandon(void* context, int role);

  nanobind::object prepare_, commit_, abandon_;
  std::vector<std::string> names_;
  std::vector<ncclFalconBuffer_t> buffers_;
};

/// Rank r takes roles[r]. Of all ranks together. Throws CallError; then nothing is changed.
void reshape(const Communicator& job, const nanobind::list& roles);
/// The roles of all `size` ranks, by rank.
nanobind::list rolesOf(const Communicator& job, int size);

}  // namespace falcon::python
