// How the calls of a group reach the vendor's library.
#include <algorithm>
#include <type_traits>

#include "base/log.h"
#include "gpu/straight_call.h"
#include "gpu/vendor_communicator.h"

namespace falcon::gpu {
namespace {

ncclRedOp_t opOf(const Call& call) {
  return static_cast<ncclRedOp_t>(call.reduction == ReduceOp::preMulSum ? call.multiplier.engineOp
                                                                        : static_cast<int>(call.reduction));
}

/// All engines of a group are of one kind.
VendorCommunicator& vendorsOf(const Submission& submission) {
  return static_cast<VendorCommunicator&>(*submission.engine);
}

}  // namespace

Result<ncclResult_t> VendorCommunicator::submitWith(const Call& call, ncclComm_t comm, cudaStream_t stream,
                                                    const ncclCollConfig_t* settings) const {
  const auto type = static_cast<ncclDataType_t>(call.type);
  const ncclRedOp_t op = opOf(call);
  // The kinds of collectives differ by their arguments between the buffers and the communicator.
  const auto withConfig = [&]<class Function>(const char* name, std::type_identity<Function>,
                                              auto... between) -> Result<ncclResult_t> {
    const auto function = library().template find<Function>(name);
    if (!function) return log::decided(library().missing(name));
    return function(call.send, call.receive, call.count, type, between..., comm, stream, settings);
  };
  switch (call.operation) {
    case Operation::allReduce:
      return withConfig("ncclAllReduceConfig", std::type_identity<decltype(ncclAllReduceConfig)>(), op);
    case Operation::broadcast:
      return withConfig("ncclBroadcastConfig", std::type_identity<decltype(ncclBroadcastConfig)>(), call.peer);
    case Operation::reduce:
      return withConfig("ncclReduceConfig", std::type_identity<decltype(ncclReduceConfig)>(), op, call.peer);
    case Operation::allGather:
      return withConfig("ncclAllGatherConfig", std::type_identity<decltype(ncclAllGatherConfig)>());
    case Operation::reduceScatter:
      return withConfig("ncclReduceScatterConfig", std::type_identity<decltype(ncclReduceScatterConfig)>(), op);
    case Operation::allToAll:
      return withConfig("ncclAlltoAllConfig", std::type_identity<decltype(ncclAlltoAllConfig)>());
    case Operation::gather:
      return withConfig("ncclGatherConfig", std::type_identity<decltype(ncclGatherConfig)>(), call.peer);
    case Operation::scatter:
      return withConfig("ncclScatterConfig", std::type_identity<decltype(ncclScatterConfig)>(), call.peer);
    default:
      return log::decided(Error::internal("nccl{} takes no settings", nameOf(call.operation)));
  }
}

Result<ncclResult_t> VendorCommunicator::submitPlain(const Call& call, ncclComm_t comm, cudaStream_t stream) const {
  const auto straight = [&]<Operation operation>(std::integral_constant<Operation, operation>) -> Result<ncclResult_t> {
    const auto function = functionOf<operation>(functions());
    if (!function) return log::decided(library().missing(fmt::format("nccl{}", nameOf(operation)).c_str()));
    return callStraight<operation>(function, call.send, call.receive, call.count,
                                   static_cast<ncclDataType_t>(call.type), opOf(call), call.peer, comm, stream);
  };
  switch (call.operation) {
#define FALCON_STRAIGHT(name) \
  case Operation::name:       \
    return straight(std::integral_constant<Operation, Operation::name>());
    FALCON_STRAIGHT(allReduce)
    FALCON_STRAIGHT(broadcast)
    FALCON_STRAIGHT(reduce)
    FALCON_STRAIGHT(allGather)
    FALCON_STRAIGHT(reduceScatter)
    FALCON_STRAIGHT(send)
    FALCON_STRAIGHT(receive)
    FALCON_STRAIGHT(allToAll)
    FALCON_STRAIGHT(gather)
    FALCON_STRAIGHT(scatter)
#undef FALCON_STRAIGHT
  }
  return ncclInternalError;
}

Status VendorCommunicator::wasAborted(const char* function) {
  return log::decided(Error::invalidUsage("{}: the communicator was aborted", function));
}

Status VendorCommunicator::submit(const Call& call, cudaStream_t stream, const void* settings) {
  const ncclComm_t comm = communicator_.load();
  if (!comm) return wasAborted(fmt::format("nccl{}", nameOf(call.operation)).c_str());
  const auto result = settings ? submitWith(call, comm, stream, static_cast<const ncclCollConfig_t*>(settings))
                               : submitPlain(call, comm, stream);
  if (!result) return result.error();
  if (*result != ncclSuccess)
    return log::decided(library().error(*result, fmt::format("nccl{}", nameOf(call.operation)).c_str(), comm));
  count(call.operation);
  return {};
}

/// Between the vendor's GroupStart and its end.
Status VendorCommunicator::submitAll(std::span<const Submission> group) const {
  for (const Submission& one : group) {
    const Status done = vendorsOf(one).submit(one.call, static_cast<cudaStream_t>(one.stream), one.settings);
    if (!done) return done;
  }
  return {};
}

TimedLaunch VendorCommunicator::aboutToLaunch(std::span<const Submission> group) {
  TimedLaunch launch;
  for (const Submission& one : group)
    if (LaunchedWork* const work = vendorsOf(one).launchesToldTo())
      work->times().before(launch, one.stream, one.engine->id());
  return launch;
}

/// Once for each stream.
void VendorCommunicator::noteLaunches(std::span<const Submission> group, TimedLaunch& launch) {
  for (std::size_t i = 0; i < group.size(); ++i) {
    LaunchedWork* const work = vendorsOf(group[i]).launchesToldTo();
    if (!work) continue;
    if (!launch.streams.empty()) work->times().behind(launch, SystemClock::instance().now());
    const auto noted = [&](const Submission& other) {
      return vendorsOf(other).launchesToldTo() && other.stream == group[i].stream;
    };
    if (std::any_of(group.begin(), group.begin() + static_cast<std::ptrdiff_t>(i), noted)) continue;
    work->note(group[i].stream);
  }
}

Status VendorCommunicator::run(const Call& call) {
  const Submission submission{.engine = this, .call = call};
  return VendorCommunicator::run({&submission, 1});
}

Status VendorCommunicator::run(std::span<const Submission> group) {
  if (group.empty()) return {};
  if (group.size() == 1) {
    Launch launch(vendorsOf(group[0]), group[0].stream);
    Status done = submitAll(group);
    launch.made();
    return done;
  }
  TimedLaunch launch = aboutToLaunch(group);
  if (const Status begun = told(functions().groupStart(), "ncclGroupStart", nullptr); !begun) return begun;
  const Status submitted = submitAll(group);
  const ncclResult_t ended = functions().groupEnd();
  noteLaunches(group, launch);
  return submitted ? told(ended, "ncclGroupEnd", nullptr) : submitted;
}

Result<double> VendorCommunicator::estimate(std::span<const Submission> group) {
  if (group.empty()) return 0.0;
  if (!functions().groupSimulateEnd) return log::decided(library().missing("ncclGroupSimulateEnd"));
  if (const Status begun = told(functions().groupStart(), "ncclGroupStart", nullptr); !begun) return begun.error();
  std::vector<std::uint64_t> before;
  for (const Submission& one : group) before.push_back(vendorsOf(one).collectives_);
  const Status submitted = submitAll(group);
  for (std::size_t i = group.size(); i-- > 0;) vendorsOf(group[i]).collectives_ = before[i];  // nothing runs
  ncclSimInfo_t info = NCCL_SIM_INFO_INITIALIZER;
  const ncclResult_t ended = functions().groupSimulateEnd(&info);
  if (!submitted) return submitted.error();
  if (const Status done = told(ended, "ncclGroupSimulateEnd", nullptr); !done) return done.error();
  return info.estimatedTime;
}

}  // namespace falcon::gpu
