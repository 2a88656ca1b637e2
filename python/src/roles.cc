#include "roles.h"

#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>

#include "library.h"

namespace falcon::python {

namespace nb = nanobind;

namespace {

/// No exception of Python's may go through the library, which knows none.
template <typename Call>
bool called(const char* what, Call&& call) {
  try {
    call();
    return true;
  } catch (nb::python_error& error) {
    error.discard_as_unraisable(what);
  } catch (const std::exception& error) {
    PyErr_SetString(PyExc_RuntimeError, error.what());
    PyErr_WriteUnraisable(Py_None);
  }
  return false;
}

}  // namespace

RoleHooks::RoleHooks(nb::object prepare, nb::object commit, nb::object abandon)
    : prepare_(std::move(prepare)), commit_(std::move(commit)), abandon_(std::move(abandon)) {}

void RoleHooks::registerFor(const Communicator& job, const nb::list& groups) {
  std::vector<std::shared_ptr<ncclComm>> held;
  std::vector<ncclComm_t> handles;
  for (const nb::handle group : groups) {
    held.push_back(group.is_none() ? nullptr : nb::cast<std::shared_ptr<Communicator>>(group)->handle());
    handles.push_back(held.back().get());
  }
  const ncclFalconReshapeHooks_t hooks{sizeof hooks,
                                       this,
                                       &RoleHooks::prepare,
                                       &RoleHooks::commit,
                                       &RoleHooks::abandon,
                                       handles.data(),
                                       static_cast<int>(handles.size())};
  check(library().ncclFalconRegisterReshape(job.handle().get(), &hooks));
}

ncclResult_t RoleHooks::prepare(void* context, int role, const ncclFalconBuffer_t** buffers, size_t* count) {
  auto* const self = static_cast<RoleHooks*>(context);
  const nb::gil_scoped_acquire locked;
  bool isThere = false;
  const bool went = called("prepare of nccl_falcon", [&] {
    const nb::object given = self->prepare_(role);
    if (given.is_none()) return;
    self->names_.clear();
    self->buffers_.clear();
    const auto list = nb::cast<nb::list>(given);
    self->names_.reserve(nb::len(list));  // names stay where they are
    for (const nb::handle each : list) {
      const auto [name, address, bytes] = nb::cast<std::tuple<std::string, std::uintptr_t, size_t>>(each);
      self->names_.push_back(name);
      // NOLINTNEXTLINE(performance-no-int-to-ptr): Python tells memory by its address.
      self->buffers_.push_back({self->names_.back().c_str(), reinterpret_cast<void*>(address), bytes});
    }
    isThere = true;
  });
  if (!went || !isThere) return ncclSystemError;
  *buffers = self->buffers_.data();
  *count = self->buffers_.size();
  return ncclSuccess;
}

void RoleHooks::commit(void* context, int role) {
  const nb::gil_scoped_acquire locked;
  called("commit of nccl_falcon", [&] { static_cast<RoleHooks*>(context)->commit_(role); });
}

void RoleHooks::abandon(void* context, int role) {
  const nb::gil_scoped_acquire locked;
  called("abandon of nccl_falcon", [&] { static_cast<RoleHooks*>(context)->abandon_(role); });
}

void reshape(const Communicator& job, const nb::list& roles) {
  std::vector<int> numbers;
  for (const nb::handle role : roles) numbers.push_back(nb::cast<int>(role));
  const nb::gil_scoped_release unlocked;
  check(library().ncclFalconReshape(job.handle().get(), numbers.data(), static_cast<int>(numbers.size())));
}

nb::list rolesOf(const Communicator& job, int size) {
  std::vector<int> numbers(static_cast<std::size_t>(size));
  check(library().ncclFalconRoles(job.handle().get(), numbers.data(), size));
  nb::list roles;
  for (const int role : numbers) roles.append(role);
  return roles;
}

}  // namespace falcon::python
