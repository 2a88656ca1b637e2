// An end over UCX that is being made.
#pragma once

#include "core/loose_end.h"
#include "ucx/ucx_end.h"
#include "ucx/ucx_facts.h"

namespace falcon::net {

class UcxLooseEnd final : public LooseEnd {
 public:
  /// Error (system): UCX cannot.
  static Result<std::unique_ptr<LooseEnd>> make(ucp_context_h context, bool sends);
  UcxLooseEnd(std::unique_ptr<UcxEnd> end, UcxFacts facts, bool sends)
      : end_(std::move(end)), ours_(std::move(facts)), sends_(sends) {}

  std::string facts() const override { return ours_.text(); }
  /// Error (invalidUsage) also: the other end has another UCX, whose messages need not be what ours expects.
  Status connect(std::string_view facts, const std::string& peer) override;
  Result<bool> settle() override;
  Result<std::unique_ptr<Connection>> begin(FileDescriptor socket, std::string peer) override;

 private:
  std::unique_ptr<UcxEnd> end_;
  const UcxFacts ours_;
  const bool sends_;
  std::string peer_;
  std::uint64_t firstTag_ = 0;  // of the messages of this connection
};

}  // namespace falcon::net
