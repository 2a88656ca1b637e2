#include "gpu/vendor_communicator.h"

#include <algorithm>
#include <cstring>
#include <string_view>
#include <type_traits>

#include "base/log.h"
#include "base/parameters.h"

namespace falcon::gpu {
namespace {

ncclRedOp_t opOf(const Call& call) {
  return static_cast<ncclRedOp_t>(call.reduction == ReduceOp::preMulSum ? call.multiplier.vendorOp
                                                                        : static_cast<int>(call.reduction));
}

}  // namespace

ncclConfig_t VendorConfig::forVendor() const {
  ncclConfig_t config = values;
  config.blocking = 1;
  if (config.netName) config.netName = networkName.c_str();
  if (config.commName) config.commName = name.c_str();
  return config;
}

Result<std::unique_ptr<VendorCommunicator>> VendorCommunicator::create(
    std::shared_ptr<const VendorLibrary> library, std::shared_ptr<const CudaDriver> driver,
    std::unique_ptr<collectives::HostCommunicator> host, const VendorConfig& config, Nanoseconds limit,
    LaunchedWork* work) {
  // There, too, the variable comes before the configuration, and calls that go on in the background are made blocking
  // for nobody but us.
  if (std::string_view(parameters::blockingWords[parameters::blocking.value()]) == "0")
    return log::decided(
        Error::invalidUsage("NCCL_COMM_BLOCKING=0 makes the vendor's own communicators nonblocking, which Falcon's "
                            "engine for GPUs does not "
                            "follow: unset it, and set blocking = 0 in the program's ncclConfig_t"));
  // The vendor's rendezvous has an id of its own; it travels over ours.
  ncclUniqueId id{};
  std::string mine;
  if (host->rank() == 0) {
    const Status made = library->status(library->functions.getUniqueId(&id), "ncclGetUniqueId", nullptr);
    // The others wait for an answer: an empty one tells them.
    if (made)
      mine.assign(id.internal, sizeof id.internal);
    else
      log::decided(made.error());
  }
  const auto ids = host->network().allGather(mine, limit);
  if (!ids) return ids.error();
  if ((*ids)[0].size() != sizeof id.internal)
    return log::decided(Error::system("rank 0 could not start the rendezvous of the vendor's NCCL; its log says why"));
  std::memcpy(id.internal, (*ids)[0].data(), sizeof id.internal);

  ncclConfig_t values = config.forVendor();
  ncclComm_t communicator = nullptr;
  const auto& functions = library->functions;
  const Status joined =
      library->status(functions.commInitRankConfig(&communicator, host->size(), id, host->rank(), &values),
                      "ncclCommInitRankConfig", nullptr);
  if (!joined) return log::decided(joined.error());
  return std::unique_ptr<VendorCommunicator>(
      new VendorCommunicator(std::move(library), std::move(driver), std::move(host), config, communicator, work));
}

VendorCommunicator::VendorCommunicator(std::shared_ptr<const VendorLibrary> library,
                                       std::shared_ptr<const CudaDriver> driver,
                                       std::unique_ptr<collectives::HostCommunicator> host, VendorConfig config,
                                       ncclComm_t communicator, LaunchedWork* work)
    : library_(std::move(library)),
      driver_(std::move(driver)),
      host_(std::move(host)),
      config_(std::move(config)),
      work_(work),
      communicator_(communicator) {
  if (library_->functions.commCuDevice(communicator, &device_) != ncclSuccess) device_ = 0;
}

VendorCommunicator::~VendorCommunicator() {
  if (ncclComm_t communicator = communicator_.exchange(nullptr)) library_->functions.commDestroy(communicator);
}

Result<std::unique_ptr<Engine>> VendorCommunicator::split(int color, int key) {
  const ncclComm_t parent = communicator_.load();
  if (!parent) return log::decided(Error::invalidUsage("ncclCommSplit: the communicator was aborted"));
  auto beside = host_->split(color, key);
  if (!beside) return beside.error();
  ncclConfig_t values = config_.forVendor();
  ncclComm_t child = nullptr;
  const Status done =
      library_->status(library_->functions.commSplit(parent, color, key, &child, &values), "ncclCommSplit", parent);
  if (!done) return log::decided(done.error());
  if (!*beside) return std::unique_ptr<Engine>();
  std::unique_ptr<collectives::HostCommunicator> host(static_cast<collectives::HostCommunicator*>(beside->release()));
  return std::unique_ptr<Engine>(new VendorCommunicator(library_, driver_, std::move(host), config_, child, work_));
}

Result<std::unique_ptr<Engine>> VendorCommunicator::shrink(std::span<const Rank> excluded, bool despiteFailure) {
  constexpr const char* function = "ncclCommShrink";
  const auto parent = forCall(function, library_->functions.commShrink != nullptr);
  if (!parent) return parent.error();
  auto beside = host_->shrink(excluded, despiteFailure);
  if (!beside) return beside.error();
  ncclConfig_t values = config_.forVendor();
  std::vector<int> list(excluded.begin(), excluded.end());
  ncclComm_t child = nullptr;
  const int flags = despiteFailure ? NCCL_SHRINK_ABORT : NCCL_SHRINK_DEFAULT;
  const Status done =
      told(library_->functions.commShrink(*parent, list.data(), static_cast<int>(list.size()), &child, &values, flags),
           function, *parent);
  if (!done) return done.error();
  std::unique_ptr<collectives::HostCommunicator> host(static_cast<collectives::HostCommunicator*>(beside->release()));
  return std::unique_ptr<Engine>(new VendorCommunicator(library_, driver_, std::move(host), config_, child, work_));
}

Status VendorCommunicator::revoke() {
  constexpr const char* function = "ncclCommRevoke";
  const auto communicator = forCall(function, library_->functions.commRevoke != nullptr);
  if (!communicator) return communicator.error();
  const Status done = told(library_->functions.commRevoke(*communicator, NCCL_REVOKE_DEFAULT), function, *communicator);
  return done ? host_->revoke() : done;
}

Status VendorCommunicator::finalize() {
  if (const ncclComm_t communicator = communicator_.load()) {
    const Status done =
        library_->status(library_->functions.commFinalize(communicator), "ncclCommFinalize", communicator);
    if (!done) return log::decided(done.error());
  }
  return host_->finalize();
}

void VendorCommunicator::abort() {
  if (const ncclComm_t communicator = communicator_.exchange(nullptr)) library_->functions.commAbort(communicator);
  host_->abort();
}

Status VendorCommunicator::asyncError() const {
  const ncclComm_t communicator = communicator_.load();
  if (!communicator) return Error::remote("the communicator was aborted");
  ncclResult_t state = ncclSuccess;
  const Status asked = library_->status(library_->functions.commGetAsyncError(communicator, &state),
                                        "ncclCommGetAsyncError", communicator);
  if (!asked) return asked;
  if (state != ncclSuccess) return library_->error(state, "the background work", communicator);
  return host_->asyncError();
}

bool VendorCommunicator::isForHost(const Call& call, const void* stream) const {
  if (!driver_ || stream || call.count == 0) return false;
  // All members must decide alike: the receive buffer is there on more ranks than the send buffer (Broadcast), except
  // where only the root receives.
  const void* buffer = call.receive ? call.receive : call.send;
  if (call.operation == Operation::reduce || call.operation == Operation::gather)
    buffer = call.send ? call.send : call.receive;
  return buffer && driver_->memoryOf(buffer) == MemoryKind::pageable;
}

Result<ncclResult_t> VendorCommunicator::submitWith(const Call& call, ncclComm_t comm, cudaStream_t stream,
                                                    const ncclCollConfig_t* settings) const {
  const auto type = static_cast<ncclDataType_t>(call.type);
  const ncclRedOp_t op = opOf(call);
  // The kinds of collectives differ by their arguments between the buffers and the communicator.
  const auto withConfig = [&]<class Function>(const char* name, std::type_identity<Function>,
                                              auto... between) -> Result<ncclResult_t> {
    const auto function = library_->find<Function>(name);
    if (!function) return log::decided(library_->missing(name));
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
  const auto& f = library_->functions;
  const auto type = static_cast<ncclDataType_t>(call.type);
  const ncclRedOp_t op = opOf(call);
  switch (call.operation) {
    case Operation::allReduce:
      return f.allReduce(call.send, call.receive, call.count, type, op, comm, stream);
    case Operation::broadcast:
      return f.broadcast(call.send, call.receive, call.count, type, call.peer, comm, stream);
    case Operation::reduce:
      return f.reduce(call.send, call.receive, call.count, type, op, call.peer, comm, stream);
    case Operation::allGather:
      return f.allGather(call.send, call.receive, call.count, type, comm, stream);
    case Operation::reduceScatter:
      return f.reduceScatter(call.send, call.receive, call.count, type, op, comm, stream);
    case Operation::send:
      return f.send(call.send, call.count, type, call.peer, comm, stream);
    case Operation::receive:
      return f.receive(call.receive, call.count, type, call.peer, comm, stream);
    case Operation::allToAll:
      if (!f.allToAll) return log::decided(library_->missing("ncclAlltoAll"));
      return f.allToAll(call.send, call.receive, call.count, type, comm, stream);
    case Operation::gather:
      if (!f.gather) return log::decided(library_->missing("ncclGather"));
      return f.gather(call.send, call.receive, call.count, type, call.peer, comm, stream);
    case Operation::scatter:
      if (!f.scatter) return log::decided(library_->missing("ncclScatter"));
      return f.scatter(call.send, call.receive, call.count, type, call.peer, comm, stream);
  }
  return ncclInternalError;
}

Status VendorCommunicator::submit(const Call& call, cudaStream_t stream, const void* settings) {
  const ncclComm_t comm = communicator_.load();
  if (!comm) return log::decided(Error::invalidUsage("nccl{}: the communicator was aborted", nameOf(call.operation)));
  const auto result = settings ? submitWith(call, comm, stream, static_cast<const ncclCollConfig_t*>(settings))
                               : submitPlain(call, comm, stream);
  if (!result) return result.error();
  if (*result != ncclSuccess)
    return log::decided(library_->error(*result, fmt::format("nccl{}", nameOf(call.operation)).c_str(), comm));
  if (!isPointToPoint(call.operation)) ++collectives_;
  return {};
}

Result<float> simulateVendorGroup(std::span<const Submission> submissions) {
  if (submissions.empty()) return 0.0f;
  const auto communicatorOf = [](const Submission& one) { return static_cast<VendorCommunicator*>(one.engine); };
  const VendorLibrary& library = *communicatorOf(submissions[0])->library_;
  if (!library.functions.groupSimulateEnd) return log::decided(library.missing("ncclGroupSimulateEnd"));
  const Status begun = library.status(library.functions.groupStart(), "ncclGroupStart", nullptr);
  if (!begun) return log::decided(begun.error());
  Status first;
  for (const Submission& one : submissions) {
    const std::uint64_t before = communicatorOf(one)->collectives_;
    first = communicatorOf(one)->submit(one.call, static_cast<cudaStream_t>(one.stream), one.settings);
    communicatorOf(one)->collectives_ = before;  // nothing runs
    if (!first) break;
  }
  ncclSimInfo_t info = NCCL_SIM_INFO_INITIALIZER;
  const Status ended = library.status(library.functions.groupSimulateEnd(&info), "ncclGroupSimulateEnd", nullptr);
  if (!first) return first.error();
  if (!ended) return log::decided(ended.error());
  return info.estimatedTime;
}

Status runVendorGroup(std::span<const Submission> submissions) {
  const auto submit = [](const Submission& one) {
    return static_cast<VendorCommunicator*>(one.engine)
        ->submit(one.call, static_cast<cudaStream_t>(one.stream), one.settings);
  };
  const auto note = [](const Submission& one) {
    if (LaunchedWork* const work = static_cast<VendorCommunicator*>(one.engine)->work_) work->note(one.stream);
  };
  if (submissions.empty()) return {};
  if (submissions.size() == 1) {
    Status done = submit(submissions[0]);
    note(submissions[0]);
    return done;
  }

  const VendorLibrary& library = *static_cast<VendorCommunicator*>(submissions[0].engine)->library_;
  Status first = library.status(library.functions.groupStart(), "ncclGroupStart", nullptr);
  if (!first) return log::decided(first.error());
  for (const Submission& one : submissions) {
    first = submit(one);
    if (!first) break;
  }
  const Status ended = library.status(library.functions.groupEnd(), "ncclGroupEnd", nullptr);
  for (std::size_t i = 0; i < submissions.size(); ++i) {
    const auto sameStream = [&](const Submission& other) { return other.stream == submissions[i].stream; };
    if (std::none_of(submissions.begin(), submissions.begin() + static_cast<std::ptrdiff_t>(i), sameStream))
      note(submissions[i]);
  }
  if (!first) return first;
  if (!ended) return log::decided(ended.error());
  return {};
}

}  // namespace falcon::gpu
