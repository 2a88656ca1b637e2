// The memory of one call on one rank: inputs and results with guards around, in place or not.
#pragma once

#include <string>
#include <vector>

#include "call_spec.h"

namespace falcon::property {

class Buffers {
 public:
  Buffers(const CallSpec& call, int rank, int ranks);
  Buffers(const Buffers&) = delete;

  const CallSpec& call() const { return call_; }
  /// NULL where this rank has none.
  const void* send() { return sends_ ? memory() + sendAt_ : nullptr; }
  void* receive() { return receives_ ? memory() + receiveAt_ : nullptr; }
  void* scalar() { return scalar_; }
  /// Inputs and guards as they were before the call.
  void reset();
  /// "" where the result is right and no byte beside it has changed.
  std::string wrong() const;
  std::uint64_t digest() const;

 private:
  static constexpr std::size_t line = 64;
  // So that the calls' offsets decide about the alignment.
  struct alignas(line) Line {
    std::byte bytes[line];
  };
  std::byte* memory() { return lines_[0].bytes; }
  const std::byte* memory() const { return lines_[0].bytes; }

  const CallSpec call_;
  const int rank_, ranks_;
  const bool sends_, receives_;
  std::size_t sendAt_ = 0, receiveAt_ = 0, receiveBytes_ = 0;
  alignas(8) std::byte scalar_[8] = {};
  std::vector<Line> lines_;
  std::vector<std::byte> before_;
};

}  // namespace falcon::property
