#include "gpu/vendor_communicator.h"

#include <string_view>
#include <vector>

#include "base/log.h"
#include "base/parameters.h"

namespace falcon::gpu {
namespace {

/// There, too, the variable comes before the configuration, and calls that go on in the background are made blocking
/// for nobody but us.
Status checkThatVendorBlocks() {
  if (std::string_view(parameters::blockingWords[parameters::blocking.value()]) != "0") return {};
  return log::decided(
      Error::invalidUsage("NCCL_COMM_BLOCKING=0 makes the vendor's own communicators nonblocking, which Falcon's "
                          "engine for GPUs does not "
                          "follow: unset it, and set blocking = 0 in the program's ncclConfig_t"));
}

/// What the vendor is given where the caller gave `config`: its own parent's stands for null.
class ChildConfig {
 public:
  explicit ChildConfig(const VendorConfig* config) : given_(config != nullptr) {
    if (config) values_ = config->forVendor();
  }
  ncclConfig_t* get() { return given_ ? &values_ : nullptr; }

 private:
  bool given_;
  ncclConfig_t values_ = NCCL_CONFIG_INITIALIZER;
};

}  // namespace

ncclConfig_t VendorConfig::forVendor() const {
  ncclConfig_t config = values;
  config.blocking = 1;
  if (config.netName) config.netName = networkName.c_str();
  if (config.commName) config.commName = name.c_str();
  return config;
}

VendorCommunicator::Made VendorCommunicator::create(const Library& vendors, std::span<const ncclUniqueId> ids,
                                                    const Place& place, const VendorConfig& config) {
  if (const Status blocks = checkThatVendorBlocks(); !blocks) return blocks.error();
  ncclConfig_t values = config.forVendor();
  ncclComm_t communicator = nullptr;
  const VendorLibrary& library = *vendors;
  Status joined;
  if (ids.size() == 1) {
    joined =
        library.status(library.functions.commInitRankConfig(&communicator, place.size, ids[0], place.rank, &values),
                       "ncclCommInitRankConfig", nullptr);
  } else {
    constexpr const char* function = "ncclCommInitRankScalable";
    const auto join = library.find<decltype(ncclCommInitRankScalable)>(function);
    if (!join) return log::decided(library.missing(function));
    std::vector<ncclUniqueId> list(ids.begin(), ids.end());
    joined =
        library.status(join(&communicator, place.size, place.rank, static_cast<int>(list.size()), list.data(), &values),
                       function, nullptr);
  }
  if (!joined) return log::decided(joined.error());
  return std::unique_ptr<VendorCommunicator>(new VendorCommunicator(vendors, place, communicator));
}

VendorCommunicator::Made VendorCommunicator::joinGrown(const Library& vendors, const ncclUniqueId& id,
                                                       const Place& place, const VendorConfig& config) {
  constexpr const char* function = "ncclCommGrow";
  if (const Status blocks = checkThatVendorBlocks(); !blocks) return blocks.error();
  const VendorLibrary& library = *vendors;
  const auto grow = library.functions.commGrow;
  if (!grow) return log::decided(library.missing(function));
  ncclConfig_t values = config.forVendor();
  ncclComm_t communicator = nullptr;
  const Status joined =
      library.status(grow(nullptr, place.size, &id, place.rank, &communicator, &values), function, nullptr);
  if (!joined) return log::decided(joined.error());
  return std::unique_ptr<VendorCommunicator>(new VendorCommunicator(vendors, place, communicator));
}

VendorCommunicator::VendorCommunicator(Library library, const Place& place, ncclComm_t communicator)
    : library_(std::move(library)), id_(place.id), rank_(place.rank), size_(place.size), communicator_(communicator) {
  if (functions().commCuDevice(communicator, &device_) != ncclSuccess) device_ = 0;
}

VendorCommunicator::~VendorCommunicator() {
  (void)VendorCommunicator::end();
}

Status VendorCommunicator::end() {
  const ncclComm_t communicator = communicator_.exchange(nullptr);
  return communicator ? told(functions().commDestroy(communicator), "ncclCommDestroy", nullptr) : Status();
}

Status VendorCommunicator::abort() {
  const ncclComm_t communicator = communicator_.exchange(nullptr);
  return communicator ? told(functions().commAbort(communicator), "ncclCommAbort", nullptr) : Status();
}

VendorCommunicator::Made VendorCommunicator::childOf(ncclComm_t child, CommunicatorId name) const {
  if (!child) return std::unique_ptr<VendorCommunicator>();
  // It is the vendor's to end from here on, whatever comes.
  auto made = std::unique_ptr<VendorCommunicator>(new VendorCommunicator(library_, {0, 0, name}, child));
  if (const Status known = told(functions().commCount(child, &made->size_), "ncclCommCount", child); !known)
    return known.error();
  if (const Status known = told(functions().commUserRank(child, &made->rank_), "ncclCommUserRank", child); !known)
    return known.error();
  return made;
}

VendorCommunicator::Made VendorCommunicator::split(int color, int key, const VendorConfig* config,
                                                   CommunicatorId name) {
  ChildConfig values(config);
  ncclComm_t child = nullptr;
  const Status done = ask("ncclCommSplit", true, [&](ncclComm_t parent) {
    return functions().commSplit(parent, color, key, &child, values.get());
  });
  return done ? childOf(child, name) : Made(done.error());
}

VendorCommunicator::Made VendorCommunicator::shrink(std::span<const Rank> excluded, bool despiteFailure,
                                                    const VendorConfig* config, CommunicatorId name) {
  ChildConfig values(config);
  std::vector<int> list(excluded.begin(), excluded.end());
  ncclComm_t child = nullptr;
  const Status done = ask("ncclCommShrink", functions().commShrink != nullptr, [&](ncclComm_t parent) {
    return functions().commShrink(parent, list.data(), static_cast<int>(list.size()), &child, values.get(),
                                  despiteFailure ? NCCL_SHRINK_ABORT : NCCL_SHRINK_DEFAULT);
  });
  return done ? childOf(child, name) : Made(done.error());
}

VendorCommunicator::Made VendorCommunicator::grow(int size, const ncclUniqueId* id, Rank rank,
                                                  const VendorConfig* config, CommunicatorId name) {
  ChildConfig values(config);
  ncclComm_t child = nullptr;
  const Status done = ask("ncclCommGrow", functions().commGrow != nullptr, [&](ncclComm_t parent) {
    return functions().commGrow(parent, size, id, rank, &child, values.get());
  });
  return done ? childOf(child, name) : Made(done.error());
}

Result<ncclUniqueId> VendorCommunicator::uniqueIdToGrow() {
  ncclUniqueId id{};
  const Status made = ask("ncclCommGetUniqueId", functions().commGetUniqueId != nullptr,
                          [&](ncclComm_t parent) { return functions().commGetUniqueId(parent, &id); });
  if (!made) return made.error();
  return id;
}

Status VendorCommunicator::revoke() {
  return ask("ncclCommRevoke", functions().commRevoke != nullptr,
             [&](ncclComm_t communicator) { return functions().commRevoke(communicator, NCCL_REVOKE_DEFAULT); });
}

Status VendorCommunicator::finalize() {
  return ask("ncclCommFinalize", true, functions().commFinalize);
}

Status VendorCommunicator::asyncError() const {
  const ncclComm_t communicator = communicator_.load();
  if (!communicator) return Error::remote("the communicator was aborted");
  ncclResult_t state = ncclSuccess;
  const Status asked =
      library().status(functions().commGetAsyncError(communicator, &state), "ncclCommGetAsyncError", communicator);
  if (!asked) return asked;
  return library().status(state, "the background work", communicator);
}

Result<ncclComm_t> VendorCommunicator::forCall(const char* function, bool exists) const {
  if (!exists) return log::decided(library().missing(function));
  const ncclComm_t communicator = communicator_.load();
  if (!communicator) return log::decided(Error::invalidUsage("{}: the communicator was aborted", function));
  return communicator;
}

Status VendorCommunicator::told(ncclResult_t result, const char* function, ncclComm_t communicator) const {
  const Status status = library().status(result, function, communicator);
  return status ? status : log::decided(status.error());
}

// What an application keeps with a communicator.

Status VendorCommunicator::makeOp(DataType type, PreMultiplier& multiplier) {
  ncclRedOp_t op = ncclSum;
  void* const scalar = multiplier.address ? const_cast<void*>(multiplier.address) : multiplier.value.data();
  const auto residence = multiplier.address ? ncclScalarDevice : ncclScalarHostImmediate;
  const Status done = ask("ncclRedOpCreatePreMulSum", true, [&](ncclComm_t communicator) {
    return functions().redOpCreatePreMulSum(&op, scalar, static_cast<ncclDataType_t>(type), residence, communicator);
  });
  if (done) multiplier.engineOp = static_cast<int>(op);
  return done;
}

Status VendorCommunicator::destroyOp(const PreMultiplier& multiplier) {
  if (!communicator_.load()) return {};  // gone with its communicator
  return ask("ncclRedOpDestroy", true, [&](ncclComm_t communicator) {
    return functions().redOpDestroy(static_cast<ncclRedOp_t>(multiplier.engineOp), communicator);
  });
}

Result<void*> VendorCommunicator::registerBuffer(void* buffer, std::size_t size) {
  void* handle = nullptr;
  const Status done = ask("ncclCommRegister", functions().commRegister != nullptr, [&](ncclComm_t communicator) {
    return functions().commRegister(communicator, buffer, size, &handle);
  });
  if (!done) return done.error();
  return handle;
}

Status VendorCommunicator::deregisterBuffer(void* handle) {
  return ask("ncclCommDeregister", functions().commDeregister != nullptr,
             [&](ncclComm_t communicator) { return functions().commDeregister(communicator, handle); });
}

Result<void*> VendorCommunicator::registerWindow(void* buffer, std::size_t size, int flags) {
  ncclWindow_t window = nullptr;
  const Status done =
      ask("ncclCommWindowRegister", functions().commWindowRegister != nullptr, [&](ncclComm_t communicator) {
        return functions().commWindowRegister(communicator, buffer, size, &window, flags);
      });
  if (!done) return done.error();
  return static_cast<void*>(window);
}

Status VendorCommunicator::deregisterWindow(void* window) {
  return ask("ncclCommWindowDeregister", functions().commWindowDeregister != nullptr, [&](ncclComm_t communicator) {
    return functions().commWindowDeregister(communicator, static_cast<ncclWindow_t>(window));
  });
}

Result<void*> VendorCommunicator::addressOf(void* window) {
  void* address = nullptr;
  const Status done = ask("ncclWinGetUserPtr", functions().winGetUserPtr != nullptr, [&](ncclComm_t communicator) {
    return functions().winGetUserPtr(communicator, static_cast<ncclWindow_t>(window), &address);
  });
  if (!done) return done.error();
  return address;
}

}  // namespace falcon::gpu
