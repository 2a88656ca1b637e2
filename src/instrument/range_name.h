// Names of ranges that others chose (NVTX): made few and short, and kept for as long as the process lives.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <string_view>

#include "base/clock.h"
#include "instrument/range_log.h"

namespace falcon::instrument {

/// A name as it is kept: runs of digits become one `#` ("iteration 17" and "iteration 18" are one name), control
/// characters become spaces, and what does not fit is cut off between two characters of UTF-8.
class FoldedName {
 public:
  /// Null: "unnamed". Reads no more of the text than it keeps, but for digits.
  explicit FoldedName(const char* text) noexcept;
  explicit FoldedName(const wchar_t* text) noexcept;

  std::string_view text() const { return {text_.data(), size_}; }
  std::uint64_t hash() const { return hash_; }  ///< never 0

 private:
  template <class Next>
  void fold(Next next) noexcept;

  std::array<char, RangeLogHeader::nameBytes> text_{};
  std::size_t size_ = 0;
  std::uint64_t hash_ = 0;
};

/// How often ranges come, by name and in all: those that come so often that their records would drown the others' are
/// muted. Thread-safe; the counts of threads that race are near enough.
class RangeDensity {
 public:
  static constexpr std::uint32_t mostOfName = 1000;  ///< in a second
  static constexpr std::uint32_t mostInAll = 5000;   ///< in a second: beyond it, names above `muchOfName` are muted
  static constexpr std::uint32_t muchOfName = 100;

  struct Count {
    std::atomic<std::uint32_t> second{0}, ranges{0};
    /// Counts one more, and gives how many it were in this second.
    std::uint32_t add(std::uint32_t now) noexcept;
  };

  /// One more range of this name begins; false: from now on the name is muted.
  bool admit(Count& ofName, Nanoseconds now) noexcept;

 private:
  Count all_;
};

/// A name that ranges have. It stays where it is; there is one for each text, and one for all texts that are too many.
class RangeName {
 public:
  /// Thread-safe and lock-free. Null while another thread is putting the same text in.
  static RangeName* of(const FoldedName& name) noexcept;

  /// The name whose address this is; null: it is none of ours.
  static RangeName* at(const void* address) noexcept;

  std::string_view text() const { return {text_.data()}; }

  /// Its number in `log`, which is the process's `epoch`th. Names of this kind leave a part of the log's table to those
  /// that ask Falcon itself for a range.
  std::uint32_t numberIn(RangeLog& log, std::uint32_t epoch) noexcept;
  /// False: such ranges come too often, for the rest of this epoch.
  bool admit(RangeDensity& density, std::uint32_t epoch, Nanoseconds now) noexcept;
  bool isMuted(std::uint32_t epoch) const noexcept { return muted_.load(std::memory_order_relaxed) == epoch; }

  static constexpr std::uint32_t mostInLog = RangeLogHeader::mostNames * 3 / 4;

 private:
  std::atomic<std::uint64_t> hash_{0};  ///< 0: free
  std::atomic<bool> ready_{false};
  std::array<char, RangeLogHeader::nameBytes> text_{};
  std::atomic<std::uint64_t> number_{0};  ///< epoch << 32 | number
  std::atomic<std::uint32_t> muted_{0};   ///< the epoch in which it is
  RangeDensity::Count count_;

  static constexpr std::size_t places = 1024;
  static RangeName table_[places];
  static RangeName other_;
};

}  // namespace falcon::instrument
