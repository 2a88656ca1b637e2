// What Python sees: nccl_falcon._native. Tensors come as addresses; whoever calls keeps them alive.
#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "channel.h"
#include "communicator.h"
#include "completion.h"
#include "iterations.h"
#include "library.h"
#include "roles.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace falcon::python {
namespace {

using Unlocked = nb::call_guard<nb::gil_scoped_release>;

Milliseconds millisecondsOf(double seconds) {
  // Longer than anybody waits, and short enough for every clock's arithmetic.
  constexpr double most = 1e9;
  if (std::isnan(seconds) || seconds < 0) throw nb::value_error("a timeout is a number of seconds, 0 or more");
  return Milliseconds(static_cast<std::int64_t>(std::min(seconds, most) * 1000));
}

nb::bytes uniqueId() {
  ncclUniqueId id{};
  check(library().ncclFalconGetHostUniqueId(&id));
  return nb::bytes(id.internal, sizeof id.internal);
}

std::string stringOf(const nb::bytes& bytes) {
  return {bytes.c_str(), bytes.size()};
}

/// (kind, send, receive, count, type, reduction, peer) or the same with the scalar's bytes.
Operation operationOf(const nb::tuple& told) {
  if (told.size() != 7 && told.size() != 8) throw nb::value_error("an operation has 7 or 8 parts");
  Operation operation{static_cast<Kind>(nb::cast<int>(told[0])),
                      nb::cast<std::uintptr_t>(told[1]),
                      nb::cast<std::uintptr_t>(told[2]),
                      nb::cast<std::size_t>(told[3]),
                      nb::cast<int>(told[4]),
                      nb::cast<int>(told[5]),
                      nb::cast<int>(told[6])};
  if (told.size() == 8) operation.scalar = stringOf(nb::cast<nb::bytes>(told[7]));
  return operation;
}

std::vector<Operation> operationsOf(const nb::list& told) {
  std::vector<Operation> operations;
  operations.reserve(told.size());
  for (const nb::handle each : told) operations.push_back(operationOf(nb::cast<nb::tuple>(each)));
  return operations;
}

void runOne(Communicator& self, int kind, std::uintptr_t send, std::uintptr_t receive, std::size_t count, int type,
            int reduction, int peer) {
  const Operation operation{static_cast<Kind>(kind), send, receive, count, type, reduction, peer};
  self.run({&operation, 1});
}

std::shared_ptr<Completion> queueOne(Communicator& self, int kind, std::uintptr_t send, std::uintptr_t receive,
                                     std::size_t count, int type, int reduction, int peer) {
  const Operation operation{static_cast<Kind>(kind), send, receive, count, type, reduction, peer};
  return self.queue({&operation, 1});
}

void runAll(Communicator& self, const nb::list& told) {
  const auto operations = operationsOf(told);
  const nb::gil_scoped_release unlocked;
  self.run(operations);
}

std::shared_ptr<Completion> queueAll(Communicator& self, const nb::list& told) {
  const auto operations = operationsOf(told);
  const nb::gil_scoped_release unlocked;
  return self.queue(operations);
}

void registerLayout(const Communicator& self, int data, int pipeline, int tensor, int dataIndex, int pipelineIndex,
                    int tensorIndex, int microBatches, int multiple, int least, int most, bool evenOnly) {
  ncclFalconLayout_t layout{};
  layout.size = sizeof layout;
  layout.dataParallelSize = data;
  layout.pipelineParallelSize = pipeline;
  layout.tensorParallelSize = tensor;
  layout.dataParallelIndex = dataIndex;
  layout.pipelineParallelIndex = pipelineIndex;
  layout.tensorParallelIndex = tensorIndex;
  layout.microBatches = microBatches;
  layout.microBatchMultiple = multiple;
  layout.leastMicroBatches = least;
  layout.mostMicroBatches = most;
  layout.evenOnly = evenOnly;
  check(library().ncclFalconRegisterLayout(self.handle().get(), &layout));
}

void registerState(const Communicator& self, const std::string& name, std::uintptr_t address, std::size_t bytes,
                   bool replicated) {
  // NOLINTNEXTLINE(performance-no-int-to-ptr): Python tells memory by its address.
  void* const memory = reinterpret_cast<void*>(address);
  check(library().ncclFalconRegisterState(self.handle().get(), name.c_str(), memory, bytes,
                                          replicated ? NCCL_FALCON_STATE_REPLICATED : 0));
}

void unregisterState(const Communicator& self, const std::string& name) {
  check(library().ncclFalconUnregisterState(self.handle().get(), name.c_str()));
}

const char* folderOf(const std::optional<std::string>& folder) {
  return folder ? folder->c_str() : nullptr;
}

void checkpoint(const Communicator& self, std::uint64_t iteration, const std::optional<std::string>& folder) {
  check(library().ncclFalconCheckpoint(self.handle().get(), iteration, folderOf(folder)));
}

std::optional<std::uint64_t> restore(const Communicator& self, const std::optional<std::string>& folder) {
  std::uint64_t iteration = 0;
  check(library().ncclFalconRestore(self.handle().get(), folderOf(folder), &iteration));
  if (iteration == NCCL_FALCON_NO_CHECKPOINT) return std::nullopt;
  return iteration;
}

unsigned wanted(const Communicator& self, std::uint64_t iteration) {
  unsigned flags = 0;
  check(library().ncclFalconWanted(self.handle().get(), iteration, &flags));
  return flags;
}

int restart(const Communicator& self) {
  int code = 0;
  check(library().ncclFalconRestart(self.handle().get(), &code));
  return code;
}

}  // namespace

NB_MODULE(_native, module) {
  // What lives while the interpreter ends is let go by PyTorch, which may be later.
  nb::set_leak_warnings(false);
  module.doc() = "The data path of nccl_falcon, over nccl.h and nccl_falcon.h.";
  nb::exception<CallError>(module, "CallError", PyExc_RuntimeError);

  module.def("library_path", libraryPath);
  module.def("versions", [] {
    int nccl = 0, falcon = 0;
    check(library().ncclGetVersion(&nccl));
    check(library().ncclFalconGetVersion(&falcon));
    return nb::make_tuple(nccl, falcon);
  });
  module.def("unique_id", uniqueId);

  nb::class_<Completion>(module, "Completion")
      .def("ended", &Completion::ended)
      .def(
          "wait", [](const Completion& self, double seconds) { return self.wait(millisecondsOf(seconds)); },
          "seconds"_a, Unlocked())
      .def("error", &Completion::error)
      .def("notify", &Completion::notify, "token"_a);

  module.def(
      "next_finished", [] { return FinishedTokens::instance().next(); }, Unlocked());
  module.def("stop_finished", [] { FinishedTokens::instance().stop(); });
  module.def("restart_finished", [] { FinishedTokens::instance().restart(); });

  nb::class_<Communicator>(module, "Communicator")
      .def_static(
          "create",
          [](const nb::bytes& id, int size, int rank, double timeout) {
            const std::string copied = stringOf(id);
            const Milliseconds longest = millisecondsOf(timeout);
            const nb::gil_scoped_release unlocked;
            return Communicator::create(copied, size, rank, longest);
          },
          "id"_a, "size"_a, "rank"_a, "timeout"_a)
      .def("run", runOne, Unlocked())
      .def("queue", queueOne, Unlocked())
      .def("run_all", runAll)
      .def("queue_all", queueAll)
      .def("set_timeout", [](Communicator& self, double seconds) { self.setTimeout(millisecondsOf(seconds)); })
      .def("abort", &Communicator::abort, "text"_a, Unlocked())
      .def("close", &Communicator::close, Unlocked())
      .def("failure", &Communicator::failure)
      .def("trouble", &Communicator::trouble, Unlocked())
      .def("busy", &Communicator::busy)
      .def("register_layout", registerLayout, "data"_a, "pipeline"_a, "tensor"_a, "data_index"_a, "pipeline_index"_a,
           "tensor_index"_a, "micro_batches"_a, "multiple"_a, "least"_a, "most"_a, "even_only"_a, Unlocked())
      .def("iteration_begin", iterationBegin, "iteration"_a)
      .def("register_state", registerState, "name"_a, "address"_a, "bytes"_a, "replicated"_a, Unlocked())
      .def("unregister_state", unregisterState, "name"_a, Unlocked())
      .def("checkpoint", checkpoint, "iteration"_a, "folder"_a.none(), Unlocked())
      .def(
          "checkpoint_synchronize",
          [](const Communicator& self) { check(library().ncclFalconCheckpointSynchronize(self.handle().get())); },
          Unlocked())
      .def("restore", restore, "folder"_a.none(), Unlocked())
      .def("wanted", wanted, "iteration"_a, Unlocked())
      .def("restart", restart, Unlocked())
      .def("rank", &Communicator::rank)
      .def("reshape", reshape, "roles"_a)
      .def("roles", rolesOf, "size"_a)
      .def(
          "suspend",
          [](const Communicator& self, unsigned milliseconds) {
            check(library().ncclFalconSuspend(self.handle().get(), milliseconds));
          },
          "limit_milliseconds"_a, Unlocked())
      .def(
          "resume", [](const Communicator& self) { check(library().ncclFalconResume(self.handle().get())); },
          Unlocked());

  nb::class_<Channel>(module, "Channel")
      .def(
          "__init__",
          [](Channel* self, const nb::bytes& id, bool sending, std::string name) {
            new (self) Channel(stringOf(id), sending, std::move(name));
          },
          "id"_a, "sending"_a, "name"_a)
      .def("post", &Channel::post, "tag"_a, "address"_a, "bytes"_a)
      .def("close", &Channel::close, "text"_a, Unlocked());

  nb::class_<RoleHooks>(module, "RoleHooks")
      .def(nb::init<nb::object, nb::object, nb::object>(), "prepare"_a, "commit"_a, "abandon"_a)
      .def("register_for", &RoleHooks::registerFor, "job"_a, "groups"_a);

  nb::class_<IterationHook>(module, "IterationHook")
      .def(nb::init<>())
      .def("register_for", &IterationHook::registerFor, "job"_a, "function"_a.none(), "restarts"_a)
      .def("forget", &IterationHook::forget);

  module.def(
      "range_begin", [](const char* name) { check(library().ncclFalconRangeBegin(name)); }, "name"_a);
  module.def("range_end", [] { check(library().ncclFalconRangeEnd()); });
  module.def(
      "iteration_work", [](double work) { check(library().ncclFalconIterationWork(work)); }, "work"_a);
}

}  // namespace falcon::python
