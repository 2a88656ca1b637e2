// An end over verbs that is being made.
#pragma once

#include "core/loose_end.h"
#include "verbs/queue_pair.h"

namespace falcon::net {

class VerbsEnd final : public LooseEnd {
 public:
  /// @param device  its number
  static Result<std::unique_ptr<LooseEnd>> make(VerbsPort& port, int device, bool sends);
  VerbsEnd(std::unique_ptr<QueuePair> pair, int device, bool sends)
      : pair_(std::move(pair)), device_(device), sends_(sends) {}

  std::string facts() const override { return pair_->facts().text(); }
  Status connect(std::string_view facts, const std::string& peer) override;
  Result<std::unique_ptr<Connection>> begin(FileDescriptor socket, std::string peer) override;

 private:
  std::unique_ptr<QueuePair> pair_;
  const int device_;
  const bool sends_;
};

}  // namespace falcon::net
