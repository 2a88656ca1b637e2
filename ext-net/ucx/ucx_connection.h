// Messages over UCX.
#pragma once

#include <array>
#include <optional>
#include <string>

#include "core/net_state.h"
#include "core/network.h"
#include "ucx/farewell.h"
#include "ucx/ucx_end.h"

namespace falcon::net {

class UcxConnection;

struct UcxRequest final : Request {
  Result<bool> test(std::size_t& bytes) override;

  UcxConnection* connection = nullptr;
  void* request = nullptr;  ///< UCX's; null: it is done, or has failed
  std::uint64_t number = 0;
  std::size_t room = 0;
  std::size_t size = 0;  ///< once it is done
  bool isUsed = false, isDone = false;
};

/// Each message is one of UCX's, with a tag that follows from its number. Used by one thread at a time.
class UcxConnection final : public Connection {
 public:
  /// @param end       is connected
  /// @param firstTag  of the first message
  UcxConnection(std::unique_ptr<UcxEnd> end, Farewell farewell, bool sends, std::uint64_t firstTag,
                std::string peerName);
  /// In order where nothing is under way: then what was sent is not lost (departures.h). Else at once.
  ~UcxConnection() override;

  Result<void*> registerMemory(void* data, std::size_t bytes, int kind) override;
  void deregisterMemory(void*) override {}
  Result<Request*> start(void* data, std::size_t bytes, void* mark) override;
  Result<bool> test(UcxRequest& request, std::size_t& bytes);

 private:
  /// Whether UCX has done it.
  Status look(UcxRequest& request);
  /// Looks, where UCX has not, whether it ever will: for what UCX does not tell.
  Status watch(const UcxRequest& request);
  Error lost(std::string_view why);
  Error fail(Error error);

  std::unique_ptr<UcxEnd> end_;
  Farewell farewell_;
  const bool sends_;
  const std::uint64_t firstTag_;
  const std::string peerName_;
  ConnectionRecord record_;
  std::array<UcxRequest, transport::net::mostRequests> requests_{};
  std::uint64_t added_ = 0;
  std::optional<Error> failure_;
  Nanoseconds lastDone_{0}, lastWatch_{0};
  std::optional<Nanoseconds> hungUpSince_;
};

}  // namespace falcon::net
