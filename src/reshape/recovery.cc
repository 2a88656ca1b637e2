#include "reshape/recovery.h"

#include <algorithm>
#include <map>

namespace falcon::reshape {
namespace {

template <class Item>
bool has(const std::vector<Item>& items, const Item& item) {
  return std::find(items.begin(), items.end(), item) != items.end();
}

std::optional<Recovery> at(const Found& found, const std::vector<Findings>& byRank, bool shared) {
  std::map<int, Rank> readerOf;
  for (std::size_t rank = 0; rank < byRank.size(); ++rank)
    if (byRank[rank].needsReplicated && has(byRank[rank].replicated, found))
      readerOf.emplace(byRank[rank].group, static_cast<Rank>(rank));
  Recovery recovery{found.iteration, {}};
  for (std::size_t rank = 0; rank < byRank.size(); ++rank) {
    const Findings& each = byRank[rank];
    if (each.needsOwn && !has(each.own, found)) return std::nullopt;
    recovery.readers.push_back(static_cast<Rank>(rank));
    if (!each.needsReplicated) continue;
    if (!shared) {
      if (!has(each.replicated, found)) return std::nullopt;
      continue;
    }
    const auto reader = readerOf.find(each.group);
    if (reader == readerOf.end()) return std::nullopt;
    recovery.readers.back() = reader->second;
  }
  return recovery;
}

}  // namespace

std::vector<std::uint64_t> commonOf(const std::vector<std::vector<std::uint64_t>>& lists) {
  std::vector<std::uint64_t> common = lists.empty() ? std::vector<std::uint64_t>() : lists[0];
  std::erase_if(common, [&](std::uint64_t iteration) {
    return !std::all_of(lists.begin(), lists.end(), [&](const auto& list) { return has(list, iteration); });
  });
  std::sort(common.begin(), common.end());
  common.erase(std::unique(common.begin(), common.end()), common.end());
  return common;
}

void putIterations(WireWriter& wire, const std::vector<std::uint64_t>& iterations) {
  wire.put(static_cast<std::uint32_t>(iterations.size()));
  for (const std::uint64_t iteration : iterations) wire.put(iteration);
}

std::vector<std::uint64_t> takeIterations(WireReader& wire) {
  std::vector<std::uint64_t> iterations(wire.getCount(sizeof(std::uint64_t)));
  for (std::uint64_t& iteration : iterations) iteration = wire.get<std::uint64_t>();
  return iterations;
}

std::string encode(const Findings& findings) {
  WireWriter wire;
  wire.put(findings.group).put(findings.needsOwn).put(findings.needsReplicated);
  for (const auto* list : {&findings.own, &findings.replicated}) {
    wire.put(static_cast<std::uint32_t>(list->size()));
    for (const Found& each : *list) wire.put(each.iteration).put(each.run);
  }
  wire.put(std::string_view(findings.problem));
  return wire.take();
}

Result<Findings> decodeFindings(std::string_view bytes) {
  WireReader wire(bytes);
  Findings findings;
  findings.group = wire.get<int>();
  findings.needsOwn = wire.get<bool>();
  findings.needsReplicated = wire.get<bool>();
  for (auto* list : {&findings.own, &findings.replicated}) {
    list->resize(wire.getCount(2 * sizeof(std::uint64_t)));
    for (Found& each : *list) {
      each.iteration = wire.get<std::uint64_t>();
      each.run = wire.get<std::uint64_t>();
    }
  }
  findings.problem = wire.getString();
  if (wire.finished()) return findings;
  return Error::remote("a rank tells of its checkpoints in another way than this one; is it of the same build?");
}

std::optional<Recovery> chooseRecovery(const std::vector<Findings>& byRank, bool shared,
                                       const std::set<std::uint64_t>& spoiled) {
  std::set<Found, std::greater<>> candidates;
  for (const Findings& each : byRank) {
    candidates.insert(each.own.begin(), each.own.end());
    candidates.insert(each.replicated.begin(), each.replicated.end());
  }
  for (const Found& found : candidates)
    if (!spoiled.contains(found.iteration))
      if (auto recovery = at(found, byRank, shared)) return recovery;
  return std::nullopt;
}

}  // namespace falcon::reshape
