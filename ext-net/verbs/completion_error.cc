#include "verbs/completion_error.h"

#include "base/net_parameters.h"

namespace falcon::net {
namespace {

std::string reasonOfStatus(ibv_wc_status status) {
  switch (status) {
    case IBV_WC_RETRY_EXC_ERR:
      return fmt::format("it acknowledges nothing any more ({}={}, {}={})", parameters::ibTimeout.name(),
                         parameters::ibTimeout.value(), parameters::ibRetries.name(), parameters::ibRetries.value());
    case IBV_WC_RNR_RETRY_EXC_ERR:
      return "it has no receive posted";
    case IBV_WC_REM_ACCESS_ERR:
      return "it does not let us write where it had said";
    case IBV_WC_REM_INV_REQ_ERR:
    case IBV_WC_REM_OP_ERR:
      return "it cannot carry out what we ask";
    case IBV_WC_WR_FLUSH_ERR:
      return "the queue pair is broken";
    case IBV_WC_LOC_PROT_ERR:
      return "our device may not reach the memory: is it registered still?";
    case IBV_WC_LOC_LEN_ERR:
    case IBV_WC_LOC_QP_OP_ERR:
      return "our device cannot carry out what we ask";
    default:
      return "the device says so";
  }
}

}  // namespace

Error errorOf(const ibv_wc& completion, const std::string& peer) {
  const auto status = completion.status;
  const bool isOurs = status == IBV_WC_LOC_PROT_ERR || status == IBV_WC_LOC_LEN_ERR || status == IBV_WC_LOC_QP_OP_ERR;
  return Error(isOurs ? ErrorCode::system : ErrorCode::remote,
               fmt::format("the connection to {} is lost: {} (status {}, vendor's {:#x})", peer, reasonOfStatus(status),
                           static_cast<int>(status), completion.vendor_err));
}

}  // namespace falcon::net
