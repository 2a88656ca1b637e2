#include "reshape/checkpoints.h"

#include <algorithm>
#include <limits>
#include <mutex>
#include <set>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/contained.h"
#include "base/library_thread.h"
#include "base/log.h"
#include "base/wire.h"
#include "reshape/recovery.h"

namespace falcon::reshape {
namespace {

// Where one rank cannot write for long, the others have these.
constexpr std::size_t mostTold = 1000;

constexpr std::uint64_t none = std::numeric_limits<std::uint64_t>::max();

double secondsSince(Nanoseconds start) {
  return seconds(SystemClock::instance().now() - start);
}

struct Agreed {
  std::uint64_t run = 0;                ///< rank 0's
  std::vector<std::uint64_t> complete;  ///< of the iterations that this rank has stored, those that every rank has
  Rank writer = -1;                     ///< the lowest that writes a part
  std::string part;                     ///< which that is
};
/// `part`: one that this rank writes; "": it writes none.
Result<Agreed> agreeOn(std::uint64_t iteration, std::uint64_t run, const std::vector<std::uint64_t>& stored,
                       const std::string& part, Exchange& exchange) {
  WireWriter mine;
  mine.put(iteration).put(run).put(std::string_view(part));
  putIterations(mine, stored);
  const auto words = exchange.allGather(mine.bytes());
  if (!words) return words.error();
  Agreed agreed;
  std::vector<std::vector<std::uint64_t>> byRank;
  for (std::size_t rank = 0; rank < words->size(); ++rank) {
    WireReader wire((*words)[rank]);
    const auto its = wire.get<std::uint64_t>();
    const auto itsRun = wire.get<std::uint64_t>();
    if (rank == 0) agreed.run = itsRun;
    const std::string itsPart = wire.getString();
    if (agreed.part.empty() && !itsPart.empty()) agreed.writer = static_cast<Rank>(rank), agreed.part = itsPart;
    byRank.push_back(takeIterations(wire));
    if (!wire.finished() || its != iteration)
      return Error::invalidUsage("rank {} takes the checkpoint of iteration {}, this rank that of {}", rank, its,
                                 iteration);
  }
  agreed.complete = commonOf(byRank);
  return agreed;
}

/// Where there is none that can be used, of the newest that somebody has.
void warnOfIncomplete(const std::vector<Findings>& byRank, const std::string& folder) {
  std::uint64_t newest = 0;
  bool any = false;
  for (const Findings& each : byRank)
    for (const auto* list : {&each.own, &each.replicated})
      for (const Found& found : *list) newest = std::max(newest, found.iteration), any = true;
  if (any)
    log::warn(
        "no checkpoint in {} is complete on all ranks; the newest that some rank finds a part of is that of iteration "
        "{}. Is it the folder of all hosts?",
        folder, newest);
}

int groupOf(const Place& place) {
  return place.hasLayout ? place.pipelineIndex * place.tensorSize + place.tensorIndex : place.roleOrRank();
}

}  // namespace

struct Checkpoints::Writing {
  explicit Writing(Storage& to) : storage(to) {}

  /// The body of the writer's thread.
  void write(const std::string& folder, std::uint64_t iteration, const std::vector<std::uint64_t>& complete, int keep);
  void fail(const Error& error) {
    const std::lock_guard lock(mutex);
    if (!failure) failure = error;
  }

  Storage& storage;
  std::vector<StagedPart> staged;  ///< the writer's while it runs
  std::mutex mutex;                ///< of all below
  std::optional<Error> failure;
  std::optional<std::uint64_t> taken;  ///< the last one
  std::vector<std::uint64_t> stored;   ///< the last ones, ascending
  CheckpointTimes times;
};

Checkpoints::Checkpoints(Storage& storage, std::optional<std::uint64_t> run)
    : storage_(storage),
      run_(run.value_or(static_cast<std::uint64_t>(wallTime() * 1e9))),
      writing_(std::make_shared<Writing>(storage)) {}

// Whoever aborts a communicator must not wait for a storage that does not answer.
Checkpoints::~Checkpoints() {
  if (writer_.joinable()) writer_.detach();
}

void Checkpoints::await() {
  if (writer_.joinable()) writer_.join();
}

Status Checkpoints::take(const std::string& folder, std::uint64_t iteration, int keep, const Place& place,
                         Exchange& exchange) {
  if (state_.empty()) return Error::invalidUsage("no state is registered, so there is nothing to keep");
  if (iteration == none) return Error::invalidArgument("iteration {} is none: it stands for no checkpoint", iteration);
  const Nanoseconds start = SystemClock::instance().now();
  await();
  std::vector<std::pair<std::string, std::vector<StateBuffer>>> parts;
  if (auto own = state_.buffers(false); !own.empty()) parts.emplace_back(ownPart(place), std::move(own));
  if (auto replicated = state_.buffers(true); !replicated.empty() && writesReplicated(place))
    parts.emplace_back(replicatedPart(place), std::move(replicated));
  const auto agreed = agreeOn(iteration, run_, lastStored(), parts.empty() ? "" : parts[0].first, exchange);
  if (!agreed) return agreed.error();
  if (folder == folder_ && !agreed->complete.empty() && !agreed->part.empty()) {
    const bool sees = hasPart(storage_, folder, agreed->complete.back(), agreed->part);
    if (!sees && std::exchange(seesOthers_, false))
      log::notice(
          "the checkpoint folder {} is another one here than where rank {} runs: Falcon neither lets ranks exchange "
          "their roles nor restarts the job elsewhere, since parts would be looked for where they are not",
          folder, agreed->writer);
    seesOthers_ = sees;
  }
  folder_ = folder;
  Writing& writing = *writing_;
  writing.staged.resize(parts.size());
  for (std::size_t i = 0; i < parts.size(); ++i)
    stage(parts[i].second, place, {iteration, agreed->run}, parts[i].first, writing.staged[i]);
  {
    const std::lock_guard lock(writing.mutex);
    writing.times = {secondsSince(start), 0};
    writing.taken = iteration;
  }
  writer_ = libraryThread("nccl-falcon-ckp", [=, shared = writing_, complete = agreed->complete] {
    contained([&] { shared->write(folder, iteration, complete, keep); },
              [&](const char* problem) { shared->fail(Error(ErrorCode::system, problem)); });
  });
  return {};
}

void Checkpoints::Writing::write(const std::string& folder, std::uint64_t iteration,
                                 const std::vector<std::uint64_t>& complete, int keep) {
  const Nanoseconds start = SystemClock::instance().now();
  for (StagedPart& part : staged) {
    const Status written = reshape::write(storage, folder, part);
    if (!written)
      return fail(log::decided(
          Error::system("the checkpoint of iteration {} could not be kept: {}", iteration, written.error().message())));
  }
  {
    const std::lock_guard lock(mutex);
    std::erase_if(stored, [&](std::uint64_t each) { return each >= iteration; });  // gone back, or taken again
    stored.push_back(iteration);
    // Of those that were dropped nobody needs to know.
    if (const auto kept = static_cast<std::size_t>(keep); complete.size() >= kept)
      std::erase_if(stored, [&](std::uint64_t each) { return each < complete[complete.size() - kept]; });
    if (stored.size() > mostTold) stored.erase(stored.begin());
    times.writtenSeconds = secondsSince(start);
  }
  for (const StagedPart& part : staged) prune(storage, folder, part.name, complete, keep);
}

Status Checkpoints::synchronize() {
  await();
  const std::lock_guard lock(writing_->mutex);
  if (!writing_->failure) return {};
  const Error error = *writing_->failure;
  writing_->failure.reset();
  return error;
}

CheckpointTimes Checkpoints::times() const {
  const std::lock_guard lock(writing_->mutex);
  return writing_->times;
}

std::optional<std::uint64_t> Checkpoints::stored() const {
  const std::vector<std::uint64_t> all = lastStored();
  return all.empty() ? std::nullopt : std::optional(all.back());
}

std::vector<std::uint64_t> Checkpoints::lastStored() const {
  const std::lock_guard lock(writing_->mutex);
  return writing_->stored;
}

bool Checkpoints::isTakenStored() const {
  const std::lock_guard lock(writing_->mutex);
  const std::vector<std::uint64_t>& stored = writing_->stored;
  return !writing_->taken || (!stored.empty() && stored.back() == *writing_->taken);
}

/// Whether what this rank is to read of the iteration is what was written.
bool Checkpoints::verifyOn(const std::string& folder, std::uint64_t iteration, const Place& place, bool reads) {
  const auto isGood = [&](const std::string& part) {
    const Status good = verify(storage_, folder, iteration, part);
    if (!good) log::notice("the checkpoint of iteration {} does not count: {}", iteration, good.error().message());
    return static_cast<bool>(good);
  };
  return (state_.buffers(false).empty() || isGood(ownPart(place))) && (!reads || isGood(replicatedPart(place)));
}

Result<std::optional<std::uint64_t>> Checkpoints::restore(const std::string& folder, const Place& place,
                                                          Exchange& exchange) {
  if (state_.empty()) return Error::invalidUsage("no state is registered, so nothing can be restored");
  await();
  const auto own = state_.buffers(false), replicated = state_.buffers(true);
  Findings mine{groupOf(place), !own.empty(), !replicated.empty(), {}, {}, {}};
  const auto find = [&](const std::vector<StateBuffer>& buffers, const std::string& part, std::vector<Found>& found) {
    if (buffers.empty()) return;
    auto iterations = iterationsOf(storage_, folder, part, buffers, place, [&](const std::string& why) {
      // On a job of another shape all ranks would say so.
      if (place.rank == 0)
        log::notice("{}", why);
      else
        log::warn("{}", why);
    });
    if (iterations)
      found = std::move(*iterations);
    else
      mine.problem = iterations.error().message();
  };
  find(own, ownPart(place), mine.own);
  find(replicated, replicatedPart(place), mine.replicated);
  const auto told = exchange.allGather(encode(mine));
  if (!told) return told.error();
  std::vector<Findings> byRank;
  bool anyReplicated = false;
  for (const std::string& bytes : *told) {
    auto findings = decodeFindings(bytes);
    if (!findings) return findings.error();
    anyReplicated = anyReplicated || findings->needsReplicated;
    byRank.push_back(std::move(*findings));
  }
  // Every rank sees the same, so all try the same ones in the same order.
  std::set<std::uint64_t> spoiled;
  while (const auto chosen = chooseRecovery(byRank, exchange.canBroadcast(), spoiled)) {
    const Rank reader = chosen->readers[static_cast<std::size_t>(place.rank)];
    const bool reads = !replicated.empty() && reader == place.rank;
    const bool good = verifyOn(folder, chosen->iteration, place, reads);
    const auto verdicts = exchange.allGather(good ? "1" : "0");
    if (!verdicts) return verdicts.error();
    if (std::any_of(verdicts->begin(), verdicts->end(), [](const std::string& each) { return each != "1"; })) {
      spoiled.insert(chosen->iteration);
      continue;
    }
    Status loaded;
    if (!own.empty()) loaded = load(storage_, folder, chosen->iteration, ownPart(place), own);
    if (loaded && reads) loaded = load(storage_, folder, chosen->iteration, replicatedPart(place), replicated);
    // Whoever could not load says so before anybody sends what is not there.
    const auto outcomes = exchange.allGather(loaded ? std::string() : loaded.error().message());
    if (!outcomes) return outcomes.error();
    for (std::size_t rank = 0; rank < outcomes->size(); ++rank)
      if (!(*outcomes)[rank].empty())
        return Error::system("rank {} cannot load the checkpoint of iteration {}: {}", rank, chosen->iteration,
                             (*outcomes)[rank]);
    if (anyReplicated && exchange.canBroadcast()) {
      std::vector<std::span<std::byte>> buffers;
      for (const StateBuffer& buffer : replicated) buffers.push_back(buffer.span());
      if (const Status sent = exchange.broadcast(mine.group, reader, buffers); !sent) return sent.error();
    }
    const std::lock_guard lock(writing_->mutex);
    writing_->stored = {chosen->iteration};
    writing_->taken = chosen->iteration;
    return std::optional(chosen->iteration);
  }
  // Not as if there were none: who then begins anew has lost all that there was.
  for (std::size_t rank = 0; rank < byRank.size(); ++rank)
    if (!byRank[rank].problem.empty())
      return Error::system("rank {} cannot look for checkpoints: {}", rank, byRank[rank].problem);
  if (place.rank == 0) warnOfIncomplete(byRank, folder);
  return std::optional<std::uint64_t>();
}

}  // namespace falcon::reshape
