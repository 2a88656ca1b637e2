#include "buffers.h"

#include <algorithm>
#include <cstring>

#include "number.h"
#include "oracle.h"

namespace falcon::property {
namespace {

constexpr std::byte fill{0x5a};

std::size_t roundedUp(std::size_t bytes, std::size_t to) {
  return (bytes + to - 1) / to * to;
}

}  // namespace

Buffers::Buffers(const CallSpec& call, int rank, int ranks)
    : call_(call),
      rank_(rank),
      ranks_(ranks),
      sends_(sendElements(call, rank, ranks) > 0),
      receives_(receiveElements(call, rank, ranks) > 0) {
  const auto element = static_cast<std::size_t>(factsOf(call.type).bytes);
  const std::size_t send = sendElements(call, rank, ranks) * element;
  const std::size_t receive = receiveElements(call, rank, ranks) * element;
  receiveBytes_ = receive;
  sendAt_ = line + call.sendOffset * element;
  if (call.inPlace) {
    // NCCL's rule: the smaller buffer is this rank's block of the larger one.
    const std::size_t own = static_cast<std::size_t>(rank) * call.count * element;
    receiveAt_ = sendAt_;
    if (receive > send && sends_) sendAt_ += own;
    if (send > receive && receives_) receiveAt_ += own;
  } else {
    receiveAt_ = roundedUp(sendAt_ + send + line, line) + call.receiveOffset * element;
  }
  const std::size_t all = std::max(sendAt_ + send, receiveAt_ + receive) + line;
  lines_.resize(roundedUp(all, line) / line);
  before_.assign(lines_.size() * line, fill);
  for (std::size_t i = 0; i < send / element; ++i)
    storeBits(before_.data() + sendAt_ + i * element, inputBits(call, rank, i), static_cast<int>(element));
  storeBits(scalar_, scalarBits(call, rank), static_cast<int>(element));
  reset();
}

void Buffers::reset() {
  std::memcpy(memory(), before_.data(), before_.size());
}

std::string Buffers::wrong() const {
  const auto differsAt = [&](std::size_t from, std::size_t to) -> std::string {
    if (std::memcmp(memory() + from, before_.data() + from, to - from) == 0) return "";
    for (std::size_t i = from; i < to; ++i)
      if (memory()[i] != before_[i])
        return "byte " + std::to_string(static_cast<std::ptrdiff_t>(i) - static_cast<std::ptrdiff_t>(receiveAt_)) +
               " from the result's first was written";
    return "";
  };
  std::string wrong = wrongIn(memory() + receiveAt_, call_, rank_, ranks_);
  if (wrong.empty()) wrong = differsAt(0, receiveAt_);
  if (wrong.empty()) wrong = differsAt(receiveAt_ + receiveBytes_, before_.size());
  return wrong;
}

std::uint64_t Buffers::digest() const {
  std::uint64_t digest = receiveBytes_;
  for (std::size_t i = 0; i < receiveBytes_; i += 8)
    digest = mix(digest ^
                 loadBits(memory() + receiveAt_ + i, static_cast<int>(std::min<std::size_t>(8, receiveBytes_ - i))));
  return digest | 1;
}

}  // namespace falcon::property
