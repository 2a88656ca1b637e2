// One rank's buffers for a call, with guards around them, in place or not.
#pragma once

#include <gtest/gtest.h>

#include "oracle.h"

namespace falcon::test {

inline bool canBeInPlace(Operation operation) {
  return operation != Operation::allToAll;
}

class RankBuffers {
 public:
  RankBuffers(const Call& call, Rank rank, int ranks, bool inPlace)
      : call_(call),
        rank_(rank),
        ranks_(ranks),
        input_(encode(inputOf(call, rank, ranks), call.type)),
        scalar_(encode({scalarOf(rank, call.type)}, call.type)) {
    const BufferSizes sizes = bufferSizes(call, ranks);
    const std::size_t element = sizeOf(call.type);
    const std::size_t send = sizes.send * element, receive = sizes.receive * element;
    const std::size_t own = static_cast<std::size_t>(rank) * call.count * element;
    sendAt_ = receiveAt_ = guard;
    if (!inPlace) receiveAt_ = guard + send + guard;
    // NCCL's rule: the smaller buffer is this rank's block of the larger one.
    if (inPlace && receive > send) sendAt_ += own;
    if (inPlace && send > receive) receiveAt_ += own;
    memory_.assign(inPlace ? guard + std::max(send, receive) + guard : receiveAt_ + receive + guard, fill);
    std::copy(input_.begin(), input_.end(), memory_.begin() + static_cast<std::ptrdiff_t>(sendAt_));
    before_ = memory_;
  }

  Call call() {
    Call call = call_;
    call.send = memory_.data() + sendAt_;
    call.receive = memory_.data() + receiveAt_;
    // Both residences: some ranks bring their scalar, the others say where it will be.
    if (rank_ % 2 == 0) std::copy(scalar_.begin(), scalar_.end(), call.multiplier.value.begin());
    if (rank_ % 2 == 1) call.multiplier.address = scalar_.data();
    return call;
  }
  /// The result is right, and no byte outside of it has changed.
  testing::AssertionResult check() const {
    std::vector<std::byte> wanted = before_;
    const auto result = expected(call_, rank_, ranks_);
    std::copy(result.begin(), result.end(), wanted.begin() + static_cast<std::ptrdiff_t>(receiveAt_));
    for (size_t i = 0; i < wanted.size(); ++i)
      if (wanted[i] != memory_[i])
        return testing::AssertionFailure()
               << "rank " << rank_ << " of " << ranks_ << ", nccl" << nameOf(call_.operation) << ", "
               << nameOf(call_.type) << ", " << nameOf(call_.reduction) << ", " << call_.count << " elements: byte "
               << static_cast<std::ptrdiff_t>(i) - static_cast<std::ptrdiff_t>(receiveAt_) << " of the result is "
               << static_cast<int>(memory_[i]) << " instead of " << static_cast<int>(wanted[i]);
    return testing::AssertionSuccess();
  }

 private:
  static constexpr std::size_t guard = 64;
  static constexpr std::byte fill{0x5a};
  Call call_;
  Rank rank_;
  int ranks_;
  std::vector<std::byte> input_, scalar_;
  std::vector<std::byte> memory_, before_;
  std::size_t sendAt_ = 0, receiveAt_ = 0;
};

}  // namespace falcon::test
