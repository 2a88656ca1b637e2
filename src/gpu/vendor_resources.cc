// What an application keeps with a vendor's communicator: user ops and registrations.
#include "base/log.h"
#include "gpu/vendor_communicator.h"

namespace falcon::gpu {

Result<ncclComm_t> VendorCommunicator::forCall(const char* function, bool exists) const {
  if (!exists) return log::decided(library_->missing(function));
  const ncclComm_t communicator = communicator_.load();
  if (!communicator) return log::decided(Error::invalidUsage("{}: the communicator was aborted", function));
  return communicator;
}

Status VendorCommunicator::told(ncclResult_t result, const char* function, ncclComm_t communicator) const {
  const Status status = library_->status(result, function, communicator);
  return status ? status : log::decided(status.error());
}

Result<int> VendorCommunicator::createPreMulSum(void* scalar, DataType type, ncclScalarResidence_t residence) {
  constexpr const char* function = "ncclRedOpCreatePreMulSum";
  const auto communicator = forCall(function, true);
  if (!communicator) return communicator.error();
  ncclRedOp_t op = ncclSum;
  const Status done = told(library_->functions.redOpCreatePreMulSum(&op, scalar, static_cast<ncclDataType_t>(type),
                                                                    residence, *communicator),
                           function, *communicator);
  if (!done) return done.error();
  return static_cast<int>(op);
}

Status VendorCommunicator::destroyOp(int op) {
  const ncclComm_t communicator = communicator_.load();
  if (!communicator) return {};  // gone with its communicator
  return told(library_->functions.redOpDestroy(static_cast<ncclRedOp_t>(op), communicator), "ncclRedOpDestroy",
              communicator);
}

Result<void*> VendorCommunicator::registerBuffer(void* buffer, size_t size) {
  constexpr const char* function = "ncclCommRegister";
  const auto communicator = forCall(function, library_->functions.commRegister != nullptr);
  if (!communicator) return communicator.error();
  void* handle = nullptr;
  const Status done =
      told(library_->functions.commRegister(*communicator, buffer, size, &handle), function, *communicator);
  if (!done) return done.error();
  return handle;
}

Status VendorCommunicator::deregisterBuffer(void* handle) {
  constexpr const char* function = "ncclCommDeregister";
  const auto communicator = forCall(function, library_->functions.commDeregister != nullptr);
  if (!communicator) return communicator.error();
  return told(library_->functions.commDeregister(*communicator, handle), function, *communicator);
}

Result<ncclWindow_t> VendorCommunicator::registerWindow(void* buffer, size_t size, int flags) {
  constexpr const char* function = "ncclCommWindowRegister";
  const auto communicator = forCall(function, library_->functions.commWindowRegister != nullptr);
  if (!communicator) return communicator.error();
  ncclWindow_t window = nullptr;
  const Status done = told(library_->functions.commWindowRegister(*communicator, buffer, size, &window, flags),
                           function, *communicator);
  if (!done) return done.error();
  return window;
}

Status VendorCommunicator::deregisterWindow(ncclWindow_t window) {
  constexpr const char* function = "ncclCommWindowDeregister";
  const auto communicator = forCall(function, library_->functions.commWindowDeregister != nullptr);
  if (!communicator) return communicator.error();
  return told(library_->functions.commWindowDeregister(*communicator, window), function, *communicator);
}

}  // namespace falcon::gpu
