// Messages over UCX.
#pragma once

#include <array>
#include <optional>
#include <string>

#include "core/net_state.h"
#include "core/network.h"
#include "ucx/ucx_end.h"

namespace falcon::net {

class UcxConnection;

struct UcxRequest final : Request {
  Result<bool> test(std::size_t& bytes) override;

  UcxConnection* connection = nullptr;
  void* request = nullptr;  ///< UCX's; null: it is done, or has failed
  std::size_t room = 0;
  std::size_t size = 0;  ///< once it is done
  bool isUsed = false, isDone = false;
};

/// Each message is one of UCX's, with its number as tag. Used by one thread at a time.
class UcxConnection final : public Connection {
 public:
  UcxConnection(std::unique_ptr<UcxEnd> end, bool sends, std::string peerName);
  ~UcxConnection() override;

  Result<void*> registerMemory(void* data, std::size_t bytes, int kind) override;
  void deregisterMemory(void*) override {}
  Result<Request*> start(void* data, std::size_t bytes, void* mark) override;
  Result<bool> test(UcxRequest& request, std::size_t& bytes);

 private:
  Error fail(Error error);
  Error lost(ucs_status_t status);

  const std::unique_ptr<UcxEnd> end_;
  const bool sends_;
  const std::string peerName_;
  ConnectionRecord record_;
  std::array<UcxRequest, transport::net::mostRequests> requests_{};
  std::uint64_t added_ = 0;
  std::optional<Error> failure_;
};

}  // namespace falcon::net
