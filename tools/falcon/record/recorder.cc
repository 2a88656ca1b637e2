#include "record/recorder.h"

#include <algorithm>
#include <optional>
#include <utility>

namespace falcon::record {
namespace {

using instrument::CallLogView;
using instrument::ProcessState;

// A ring of 32768 calls then holds what 160,000 calls a second leave.
constexpr Nanoseconds interval = 200ms;

struct Followed {
  std::string path;
  std::optional<CallLogView> log;  ///< the newest, with the calls of all
  std::uint64_t next = 0;
};

void read(Followed& rank, std::uint64_t& missed) {
  auto log = instrument::readCallLog(rank.path, SIZE_MAX, rank.next);
  if (!log) return;  // gone meanwhile: what was read stays
  if (log->ended && rank.log) {
    // The records of one that left in order are gone.
    log->latest = std::move(rank.log->latest);
  } else {
    if (rank.next > 0 && log->calls >= rank.next) missed += log->calls - rank.next - log->latest.size();
    rank.next = log->calls;
    if (rank.log) {
      std::vector<CallRecord> calls = std::move(rank.log->latest);
      calls.insert(calls.end(), log->latest.begin(), log->latest.end());
      log->latest = std::move(calls);
    }
  }
  rank.log = std::move(*log);
}

}  // namespace

std::vector<instrument::RankSnapshot> follow(const std::vector<std::string>& paths, Nanoseconds span, Clock& clock,
                                             std::uint64_t& missed) {
  std::vector<Followed> ranks;
  for (const std::string& path : paths) {
    Followed rank{path, std::nullopt, 0};
    // What came before is not wanted.
    if (span > 0ns)
      if (const auto log = instrument::readCallLog(path, 0)) rank.next = log->calls;
    ranks.push_back(std::move(rank));
  }
  missed = 0;
  const Nanoseconds end = clock.now() + span;
  const auto runs = [](const Followed& rank) {
    return rank.log && !rank.log->ended && instrument::processStateOf(*rank.log) != ProcessState::dead;
  };
  for (;;) {
    for (Followed& rank : ranks) read(rank, missed);
    const Nanoseconds left = end - clock.now();
    if (left <= 0ns || std::none_of(ranks.begin(), ranks.end(), runs)) break;
    clock.sleep(std::min(left, interval));
  }
  std::vector<instrument::RankSnapshot> snapshots;
  for (Followed& rank : ranks)
    if (rank.log) snapshots.push_back(instrument::snapshotOf(std::move(*rank.log)));
  return snapshots;
}

}  // namespace falcon::record
