#include "control/checkpointing.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>

#include "base/job_rank.h"
#include "base/log.h"
#include "base/parameters.h"
#include "base/system_error.h"
#include "base/wire.h"
#include "control/job_files.h"
#include "gpu/cuda_driver.h"
#include "nccl_falcon.h"
#include "reshape/recovery.h"
#include "reshape/restart_request.h"

namespace falcon::control {
namespace {

// A rank that died is noticed at once; one that writes its last checkpoint to a slow storage is waited for.
constexpr Nanoseconds longestWait = std::chrono::hours(1);

Error decidedIn(const char* function, const Error& error) {
  return log::decided(Error(error.code(), fmt::format("{}: {}", function, error.message())));
}

Status decidedIn(const char* function, const Status& status) {
  if (status) return status;
  return decidedIn(function, status.error());
}

Result<std::string> chosen(const char* folder) {
  if (folder && *folder) return std::string(folder);
  if (parameters::checkpointFolder.isSet()) return parameters::checkpointFolder.value();
  return Error::invalidUsage("no folder is named; pass one, or set NCCL_FALCON_CHECKPOINT_DIR");
}

/// What a rank says of itself before a restart.
struct Word {
  std::string problem;
  std::vector<std::uint64_t> stored;  ///< its last checkpoints
  reshape::LeftOutRank self;
};

std::string encode(const Word& word) {
  WireWriter wire;
  wire.put(std::string_view(word.problem));
  reshape::putIterations(wire, word.stored);
  return wire.put(word.self.rank).put(std::string_view(word.self.host)).put(word.self.device).take();
}

Result<Word> decodeWord(std::string_view bytes) {
  WireReader wire(bytes);
  Word word;
  word.problem = wire.getString();
  word.stored = reshape::takeIterations(wire);
  word.self.rank = wire.get<Rank>();
  word.self.host = wire.getString();
  word.self.device = wire.get<int>();
  if (wire.finished()) return word;
  return Error::remote("a rank tells of itself in another way than this one; is it of the same build?");
}

/// A host whose ranks write nothing of a checkpoint has no folder yet. Errors (system).
Status roomFor(const std::string& path) {
  const std::filesystem::path folder = std::filesystem::path(path).parent_path();
  if (folder.empty()) return {};
  std::error_code failed;
  std::filesystem::create_directories(folder, failed);
  if (failed)
    return Error::system("the folder {} of the request cannot be made: {}", folder.string(), failed.message());
  if (::access(folder.c_str(), W_OK) != 0)
    return Error::system("the request cannot be written to {}: {}", folder.string(), reasonOf(errno));
  return {};
}

}  // namespace

Result<std::vector<std::string>> NetworkExchange::allGather(std::string_view mine) {
  // In pieces: the network takes 1 MiB of a rank and 64 MiB of all. With the first each says how long its words are.
  constexpr std::size_t mostOfARank = 512 << 10, mostOfAll = 32 << 20;
  const std::size_t piece =
      std::clamp(mostOfAll / static_cast<std::size_t>(network_.size()), std::size_t{64}, mostOfARank);
  std::vector<std::string> all(static_cast<std::size_t>(network_.size()));
  std::size_t longest = mine.size();
  for (std::size_t at = 0; at == 0 || at < longest; at += piece) {
    const std::string part(mine.substr(std::min(at, mine.size()), piece));
    auto parts = gatherOnce(at == 0 ? WireWriter().put(std::uint64_t{mine.size()}).take() + part : part);
    if (!parts) return parts.error();
    for (std::size_t rank = 0; rank < all.size(); ++rank) {
      std::string_view come = parts->at(rank);
      if (at == 0) {
        constexpr std::size_t head = sizeof(std::uint64_t);
        longest = std::max<std::size_t>(longest, WireReader(come.substr(0, head)).get<std::uint64_t>());
        come.remove_prefix(std::min(head, come.size()));
      }
      all[rank] += come;
    }
  }
  return all;
}

Result<std::vector<std::string>> NetworkExchange::gatherOnce(std::string_view mine) {
  std::optional<Result<std::vector<std::string>>> all;
  const auto gather = [&] { all.emplace(network_.allGather(mine, longestWait)); };
  if (job_)
    job_->aside(gather);
  else
    gather();
  return std::move(*all);
}

Status NetworkExchange::broadcast(int, Rank, std::span<const std::span<std::byte>>) {
  return Error::internal("the out-of-band network carries no state");
}

reshape::Place placeOf(Rank rank, int ranks, const std::optional<RegisteredPart>& layout) {
  reshape::Place place{.rank = rank, .ranks = ranks};
  if (!layout) return place;
  return {rank,
          ranks,
          layout->dataParallelSize,
          layout->pipelineParallelSize,
          layout->tensorParallelSize,
          layout->dataParallelIndex,
          layout->pipelineParallelIndex,
          layout->tensorParallelIndex,
          true};
}

Status Checkpointing::registerState(const char* name, void* pointer, std::size_t bytes, unsigned flags) {
  constexpr const char* function = "ncclFalconRegisterState";
  if (!name) return log::decided(Error::invalidArgument("{}: name is NULL", function));
  if ((flags & ~NCCL_FALCON_STATE_REPLICATED) != 0)
    return log::decided(
        Error::invalidArgument("{}: flags are {:#x}; NCCL_FALCON_STATE_REPLICATED is the only one", function, flags));
  if (const auto driver = gpu::cudaDriverIfLoaded(); driver && pointer) {
    const gpu::MemoryKind kind = driver->memoryOf(pointer);
    if (kind == gpu::MemoryKind::device)
      return log::decided(Error::invalidArgument(
          "{}: {} is memory of a device; register its copy in host memory, taken at the iteration's end", function,
          name));
  }
  return decidedIn(function, checkpoints_.state().add({name, static_cast<std::byte*>(pointer), bytes,
                                                       (flags & NCCL_FALCON_STATE_REPLICATED) != 0}));
}

Status Checkpointing::unregisterState(const char* name) {
  constexpr const char* function = "ncclFalconUnregisterState";
  if (!name) return log::decided(Error::invalidArgument("{}: name is NULL", function));
  return decidedIn(function, checkpoints_.state().remove(name));
}

Status Checkpointing::checkpoint(std::uint64_t iteration, const char* folder, const reshape::Place& place,
                                 reshape::Exchange& exchange, Job* job) {
  constexpr const char* function = "ncclFalconCheckpoint";
  const std::lock_guard lock(oneAtATime_);
  const auto into = chosen(folder);
  if (!into) return decidedIn(function, into.error());
  const auto keep = static_cast<int>(parameters::checkpointKeep.value());
  // What the one before took is known by now.
  const double writing = checkpoints_.times().writtenSeconds;
  if (const Status taken = checkpoints_.take(*into, iteration, keep, place, exchange); !taken)
    return decidedIn(function, taken);
  folder_ = *into;
  if (job) job->checkpointed(iteration, checkpoints_.times().waitedSeconds, writing, checkpoints_.seesOthers());
  return {};
}

Status Checkpointing::synchronize() {
  const std::lock_guard lock(oneAtATime_);
  return decidedIn("ncclFalconCheckpointSynchronize", checkpoints_.synchronize());
}

Result<std::uint64_t> Checkpointing::restore(const char* folder, const reshape::Place& place,
                                             reshape::Exchange& exchange) {
  constexpr const char* function = "ncclFalconRestore";
  const std::lock_guard lock(oneAtATime_);
  const auto from = chosen(folder);
  if (!from) return decidedIn(function, from.error());
  const auto restored = checkpoints_.restore(*from, place, exchange);
  if (!restored) return decidedIn(function, restored.error());
  folder_ = *from;
  return restored->value_or(NCCL_FALCON_NO_CHECKPOINT);
}

Result<int> Checkpointing::restart(const reshape::Place& place, int device, reshape::Exchange& exchange, Job* job) {
  constexpr const char* function = "ncclFalconRestart";
  const std::lock_guard lock(oneAtATime_);
  const std::string folder = folder_.empty() ? parameters::checkpointFolder.value() : folder_;
  const std::string path = parameters::restartFile.isSet() ? parameters::restartFile.value()
                           : folder.empty()                ? std::string()
                                                           : folder + "/restart.json";
  Word mine;
  const Rank jobRank = jobRankFromEnvironment();
  mine.self = {jobRank < 0 ? place.rank : jobRank, hostName(), device};
  // What went wrong with one before the last is no reason to stay.
  if (const Status written = checkpoints_.synchronize(); !written && !checkpoints_.isTakenStored())
    mine.problem = written.error().message();
  // Before the others go: once they have ended nobody is left to go on with.
  if (path.empty())
    mine.problem = "there is no place for the request; set NCCL_FALCON_RESTART_FILE";
  else if (const Status room = roomFor(path); !room)
    mine.problem = room.error().message();
  mine.stored = checkpoints_.lastStored();
  const auto told = exchange.allGather(encode(mine));
  if (!told) return decidedIn(function, told.error());

  reshape::RestartRequest request{.job = jobNameFromEnvironment(), .checkpointFolder = folder};
  const auto leaveOut = job ? job->leftOut() : std::vector<Rank>();
  std::vector<std::vector<std::uint64_t>> stored;
  for (std::size_t rank = 0; rank < told->size(); ++rank) {
    const auto word = decodeWord((*told)[rank]);
    if (!word) return decidedIn(function, word.error());
    if (!word->problem.empty())
      return log::decided(Error(path.empty() ? ErrorCode::invalidUsage : ErrorCode::system,
                                fmt::format("{}: rank {}: {}", function, rank, word->problem)));
    stored.push_back(word->stored);
    if (std::find(leaveOut.begin(), leaveOut.end(), word->self.rank) != leaveOut.end())
      request.leaveOut.push_back(word->self);
  }
  if (const auto complete = reshape::commonOf(stored); !complete.empty()) request.iteration = complete.back();
  // The same from every rank: each host has it, and who writes last changes nothing.
  if (const Status written = reshape::writeRestartRequest(path, request); !written)
    return decidedIn(function, written.error());
  if (job) job->restarts();
  return static_cast<int>(parameters::restartCode.value());
}

}  // namespace falcon::control
