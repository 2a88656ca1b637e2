#include "instrument/range_name.h"

#include <cstring>
#include <string_view>

namespace falcon::instrument {
namespace {

constexpr std::string_view unnamed = "unnamed";
constexpr std::string_view otherName = "other";

/// A code point in UTF-8; gives its bytes.
std::size_t encode(char32_t point, char (&bytes)[4]) {
  const auto tail = [](char32_t bits) { return static_cast<char>(0x80 | (bits & 0x3f)); };
  if (point < 0x80) {
    bytes[0] = static_cast<char>(point);
    return 1;
  }
  if (point < 0x800) {
    bytes[0] = static_cast<char>(0xc0 | point >> 6), bytes[1] = tail(point);
    return 2;
  }
  if (point < 0x10000) {
    bytes[0] = static_cast<char>(0xe0 | point >> 12), bytes[1] = tail(point >> 6), bytes[2] = tail(point);
    return 3;
  }
  bytes[0] = static_cast<char>(0xf0 | point >> 18), bytes[1] = tail(point >> 12);
  bytes[2] = tail(point >> 6), bytes[3] = tail(point);
  return 4;
}

bool isInsideOfCharacter(char byte) {
  return (static_cast<unsigned char>(byte) & 0xc0) == 0x80;
}

}  // namespace

template <class Next>
void FoldedName::fold(Next next) noexcept {
  constexpr std::size_t most = RangeLogHeader::nameBytes - 1;
  std::uint64_t hash = 14695981039346656037ULL;  // FNV-1a
  bool digits = false;
  for (char byte; (byte = next()) != 0;) {
    const bool digit = byte >= '0' && byte <= '9';
    if (digit && digits) continue;
    digits = digit;
    if (size_ == most) {
      // Not in the middle of a character: back to where it begins.
      if (isInsideOfCharacter(byte))
        while (size_ > 0 && isInsideOfCharacter(text_[size_ - 1])) --size_;
      if (isInsideOfCharacter(byte) && size_ > 0) --size_;
      break;
    }
    if (digit) byte = '#';
    if (static_cast<unsigned char>(byte) < 0x20 || byte == 0x7f) byte = ' ';
    text_[size_++] = byte;
  }
  if (size_ == 0) size_ = unnamed.copy(text_.data(), most);
  for (const char byte : text()) hash = (hash ^ static_cast<unsigned char>(byte)) * 1099511628211ULL;
  hash_ = hash == 0 ? 1 : hash;
}

FoldedName::FoldedName(const char* text) noexcept {
  fold([&] { return !text || *text == 0 ? '\0' : *text++; });
}

FoldedName::FoldedName(const wchar_t* text) noexcept {
  char bytes[4] = {};
  std::size_t size = 0, at = 0;
  fold([&] {
    if (at == size) {
      if (!text || *text == 0) return '\0';
      const auto point = static_cast<char32_t>(*text++);
      size = encode(point > 0x10ffff ? U'?' : point, bytes);
      at = 0;
    }
    return bytes[at++];
  });
}

std::uint32_t RangeDensity::Count::add(std::uint32_t now) noexcept {
  if (second.load(std::memory_order_relaxed) != now) {
    second.store(now, std::memory_order_relaxed);
    ranges.store(0, std::memory_order_relaxed);
  }
  return ranges.fetch_add(1, std::memory_order_relaxed) + 1;
}

bool RangeDensity::admit(Count& ofName, Nanoseconds now) noexcept {
  const auto second = static_cast<std::uint32_t>(now.count() / 1'000'000'000);
  const std::uint32_t inAll = all_.add(second), ofThis = ofName.add(second);
  return ofThis <= mostOfName && (inAll <= mostInAll || ofThis <= muchOfName);
}

constinit RangeName RangeName::table_[places];
constinit RangeName RangeName::other_;

RangeName* RangeName::of(const FoldedName& name) noexcept {
  constexpr std::size_t tries = 16;
  for (std::size_t i = 0; i < tries; ++i) {
    RangeName& place = table_[(name.hash() + i) % places];
    std::uint64_t hash = place.hash_.load(std::memory_order_acquire);
    if (hash == 0 && place.hash_.compare_exchange_strong(hash, name.hash(), std::memory_order_acq_rel)) {
      std::memcpy(place.text_.data(), name.text().data(), name.text().size());
      place.ready_.store(true, std::memory_order_release);
      return &place;
    }
    if (hash == name.hash()) return place.ready_.load(std::memory_order_acquire) ? &place : nullptr;
  }
  return &other_;
}

RangeName* RangeName::at(const void* address) noexcept {
  if (address == &other_) return &other_;
  const auto distance = reinterpret_cast<std::uintptr_t>(address) - reinterpret_cast<std::uintptr_t>(table_);
  return distance < sizeof table_ && distance % sizeof *table_ == 0 ? table_ + distance / sizeof *table_ : nullptr;
}

std::uint32_t RangeName::numberIn(RangeLog& log, std::uint32_t epoch) noexcept {
  const std::uint64_t known = number_.load(std::memory_order_relaxed);
  if (known >> 32 == epoch) return static_cast<std::uint32_t>(known);
  const std::uint32_t number = log.nameOf(this == &other_ ? otherName : text(), mostInLog);
  number_.store(std::uint64_t{epoch} << 32 | number, std::memory_order_relaxed);
  return number;
}

bool RangeName::admit(RangeDensity& density, std::uint32_t epoch, Nanoseconds now) noexcept {
  if (isMuted(epoch)) return false;
  if (density.admit(count_, now)) return true;
  muted_.store(epoch, std::memory_order_relaxed);
  return false;
}

}  // namespace falcon::instrument
