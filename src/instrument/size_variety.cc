#include "instrument/size_variety.h"

#include <algorithm>
#include <set>
#include <unordered_map>
#include <utility>

#include "instrument/call_hash.h"

namespace falcon::instrument {
namespace {

constexpr std::size_t keptCalls = 8192, wantedRepeats = 8, wantedSizes = 4, triedCalls = 16;
constexpr Nanoseconds sizesEvery = 1s;

}  // namespace

bool SizeVariety::add(const CallRecord& call) {
  calls_.push_back({callHash(call), callHash(call, false)});
  if (calls_.size() > keptCalls) calls_.pop_front();
  if (call.leave - looked_ < sizesEvery) return false;
  looked_ = call.leave;
  const auto borders = lasting();
  return std::any_of(borders.begin(), borders.end(), [&](std::uint64_t each) { return variesBetween(each); });
}

/// Of the calls that came often enough, those that have come for longest.
std::vector<std::uint64_t> SizeVariety::lasting() const {
  struct Use {
    std::size_t count = 0, first = 0, last = 0;
  };
  std::unordered_map<std::uint64_t, Use> uses;
  for (std::size_t i = 0; i < calls_.size(); ++i) {
    Use& use = uses.try_emplace(calls_[i].whole, Use{0, i, i}).first->second;
    ++use.count;
    use.last = i;
  }
  std::vector<std::pair<std::size_t, std::uint64_t>> spans;
  for (const auto& [hash, use] : uses)
    if (use.count > wantedRepeats) spans.emplace_back(use.last - use.first, hash);
  std::sort(spans.rbegin(), spans.rend());
  std::vector<std::uint64_t> longest;
  for (const auto& [span, hash] : spans)
    if (longest.size() < triedCalls) longest.push_back(hash);
  return longest;
}

/// From the newest of these calls back to the one before, and so on.
bool SizeVariety::variesBetween(std::uint64_t border) const {
  std::uint64_t whole = 0, withoutSize = 0, first = 0;
  std::size_t repeats = 0;
  std::set<std::uint64_t> sizes;
  bool inside = false;
  for (auto call = calls_.rbegin(); call != calls_.rend() && repeats < wantedRepeats; ++call) {
    if (call->whole != border) {
      whole = mixed(whole, call->whole);
      withoutSize = mixed(withoutSize, call->withoutSize);
      continue;
    }
    if (inside) {
      if (repeats++ == 0) first = withoutSize;
      if (withoutSize != first) return false;
      sizes.insert(whole);
    }
    inside = true;
    whole = withoutSize = 0;
  }
  return repeats == wantedRepeats && sizes.size() >= wantedSizes;
}

}  // namespace falcon::instrument
