// Who waits for senders, over UCX.
#pragma once

#include <list>

#include "core/listener_handle.h"
#include "core/network.h"
#include "transport/drop_log.h"
#include "transport/handshake.h"
#include "ucx/ucx_handshake.h"

namespace falcon::net {

/// A connection is had when who comes has proven that it knows the handle's secret. At most 32 that have not are kept,
/// for 10 s each.
class UcxListener final : public Listener {
 public:
  static Result<std::unique_ptr<Listener>> make(ucp_context_h context, const SocketAddress& address, Handle handle);
  ~UcxListener() override;
  Result<std::unique_ptr<Connection>> accept() override;

 private:
  struct Arrival {
    /// Without the patience of an end's that is in use, unless it was let in.
    ~Arrival() {
      if (end) end->cut();
    }

    std::unique_ptr<UcxEnd> end;
    std::unique_ptr<UcxHandshake> handshake;  // gone before the end
    std::string from;
    Nanoseconds since{0};
    transport::Challenge challenge{};
  };
  enum class Step { waits, proven, stranger };

  UcxListener(ucp_context_h context, const transport::Secret& secret, std::uint64_t number)
      : context_(context), secret_(secret), number_(number) {}
  static void onRequest(ucp_conn_request_h request, void* listener);
  void takeRequests(Nanoseconds now);
  Step advance(Arrival& arrival, Nanoseconds now);
  void dropped(const std::string& from, std::string_view why, Nanoseconds now);

  const ucp_context_h context_;
  const transport::Secret secret_;
  const std::uint64_t number_;
  ucp_worker_h worker_ = nullptr;
  ucp_listener_h listener_ = nullptr;
  std::list<ucp_conn_request_h> requests_;
  std::list<Arrival> arrivals_;
  transport::DropLog dropLog_;
};

}  // namespace falcon::net
