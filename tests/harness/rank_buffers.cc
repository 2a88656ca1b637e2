#include "harness/rank_buffers.h"

#include <algorithm>
#include <cstring>
#include <deque>
#include <tuple>

#include "harness/collective_oracle.h"

namespace falcon::test {
namespace {

constexpr std::size_t guard = 64;
constexpr std::byte fill{0x5a};

/// What all ranks must get alike is computed for one, and for one way that the call is carried out: tests try many.
const std::vector<std::byte>& expectedOnce(const Call& call, Rank rank, int ranks) {
  using Key = std::tuple<Operation, DataType, ReduceOp, std::size_t, Rank, Rank, int>;
  struct Known {
    Key key;
    std::vector<std::byte> bytes;
  };
  constexpr std::size_t most = 16;
  thread_local std::deque<Known> known;
  const bool isAlike = call.operation == Operation::allReduce || call.operation == Operation::broadcast ||
                       call.operation == Operation::allGather;
  const Key key{call.operation, call.type, call.reduction, call.count, call.peer, isAlike ? 0 : rank, ranks};
  const auto found = std::find_if(known.begin(), known.end(), [&](const Known& each) { return each.key == key; });
  if (found != known.end()) return found->bytes;
  if (known.size() == most) known.pop_front();
  known.push_back({key, expected(call, rank, ranks)});
  return known.back().bytes;
}

}  // namespace

bool canBeInPlace(Operation operation) {
  return operation != Operation::allToAll;
}

RankBuffers::RankBuffers(const Call& call, Rank rank, int ranks, bool inPlace)
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

Call RankBuffers::call() {
  Call call = call_;
  call.send = memory_.data() + sendAt_;
  call.receive = memory_.data() + receiveAt_;
  // Both residences: some ranks bring their scalar, the others say where it will be.
  if (rank_ % 2 == 0) std::copy(scalar_.begin(), scalar_.end(), call.multiplier.value.begin());
  if (rank_ % 2 == 1) call.multiplier.address = scalar_.data();
  return call;
}

testing::AssertionResult RankBuffers::check() const {
  std::vector<std::byte> wanted = before_;
  const auto& result = expectedOnce(call_, rank_, ranks_);
  std::copy(result.begin(), result.end(), wanted.begin() + static_cast<std::ptrdiff_t>(receiveAt_));
  // Of bytes == is a loop.
  if (std::memcmp(wanted.data(), memory_.data(), wanted.size()) == 0) return testing::AssertionSuccess();
  for (size_t i = 0; i < wanted.size(); ++i)
    if (wanted[i] != memory_[i])
      return testing::AssertionFailure() << "rank " << rank_ << " of " << ranks_ << ", nccl" << nameOf(call_.operation)
                                         << ", " << nameOf(call_.type) << ", " << nameOf(call_.reduction) << ", "
                                         << call_.count << " elements: byte "
                                         << static_cast<std::ptrdiff_t>(i) - static_cast<std::ptrdiff_t>(receiveAt_)
                                         << " of the result is " << static_cast<int>(memory_[i]) << " instead of "
                                         << static_cast<int>(wanted[i]);
  return testing::AssertionSuccess();
}

}  // namespace falcon::test
