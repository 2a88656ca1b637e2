// A connection over UCX that is being made, by who sends.
#pragma once

#include <memory>

#include "core/dialling_term.h"
#include "transport/handshake.h"
#include "ucx/ucx_handshake.h"

namespace falcon::net {

/// Used by one thread at a time. Never blocks.
class UcxDialling : public DiallingTerm {
 public:
  UcxDialling(ucp_context_h context, const ListenerHandle& handle);
  /// Without the patience of an end's that is in use: it was given up.
  ~UcxDialling() {
    if (end_) end_->cut();
  }

  /// The end, once it was let in; null: not yet. Errors (remote): nobody of ours listens there, or not within
  /// NCCL_FALCON_INIT_TIMEOUT; (system): UCX cannot.
  Result<std::unique_ptr<UcxEnd>> progress();

 private:
  Status begin();
  Error unreachable(const std::string& why) const;

  const ucp_context_h context_;
  transport::Greeting greeting_;
  std::unique_ptr<UcxEnd> end_;
  std::unique_ptr<UcxHandshake> handshake_;
  bool isThrough_ = false;
};

}  // namespace falcon::net
