// The communicators of one rank, and all that is said to NCCL. Every function throws std::runtime_error with NCCL's
// words when it fails.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "train/layout.h"
#include "train/options.h"
#include "train/pipeline.h"
#include "train/reducer.h"

struct CUstream_st;
struct ncclComm;
struct ncclFalconBuffer;

namespace falcon::train {

/// A part of a rank's state, in memory that stays.
struct NamedState {
  std::string name;
  std::span<std::byte> bytes;
};

/// Who takes another role between two iterations: see nccl_falcon.h. Roles are numbered as ranks.
class RoleTaker {
 public:
  virtual ~RoleTaker() = default;
  /// Room for the state of the role; it stays until abandon(), or for good after commit(). May throw.
  virtual std::vector<NamedState> prepare(int role) = 0;
  /// The state is there, and the communicators are those of the role.
  virtual void commit(int role) = 0;
  virtual void abandon() = 0;
};

/// Collective: every rank of the job makes one. Host memory, used by one thread; all calls but sumGradients() block.
class Communicators final : public Reducer<float>, public PipelineLink<float> {
 public:
  /// @param overlap  sumGradients() shall return at once, if the library has host streams
  Communicators(const RankInJob& inJob, const RankParts& layout, int microBatches, bool overlap);
  Communicators(const Communicators&) = delete;
  Communicators& operator=(const Communicators&) = delete;
  /// Leaves what is open to the end of the process: after an error, peers may never answer.
  ~Communicators() override;
  /// Destroys the communicators, after the last iteration.
  void close();

  /// Marks the start of an iteration; the micro-batches that this replica shall compute in it.
  MicroBatchRange beginIteration(std::uint64_t iteration);
  /// What the library told in that of the iteration before.
  struct Told {
    const char* health = nullptr;  ///< null: it told nothing
    unsigned int changed = 0;      ///< NCCL_FALCON_CHANGED_...
  };
  const Told& told() const { return told_; }
  /// Over the tensor-parallel ranks.
  void sum(float* values, std::size_t count) override;
  /// With the neighbouring pipeline stages.
  void exchange(int to, const float* sent, int from, float* received, std::size_t count) override;
  /// Names for what the trainer does in between, where the library has ranges.
  void beginPhase(const char* name) override;
  void endPhase() override;
  /// Over the data-parallel replicas. Where it overlaps, the gradients are summed after awaitGradients(), and not to be
  /// touched before.
  bool overlaps() const { return gradientStream_ != nullptr; }
  void sumGradients(std::span<float> gradients);
  void awaitGradients();
  /// Over all ranks of the job.
  void sumOverJob(std::span<double> values);

  /// Whether the library lets ranks exchange their roles.
  static bool canReshape();
  /// From now on Falcon may give this rank another role, in beginIteration(). `taker` lives as long as this. Its state
  /// is registered.
  void useReshape(RoleTaker& taker);
  /// Rank r takes role roles[r], now; all ranks alike.
  void reshape(std::span<const int> roles);

  // Checkpoints: all ranks alike. Replicas have the same state.

  /// Before the first of the functions below; throws where the library has none of this.
  void useCheckpoints(std::string folder);
  /// Stays registered until close().
  void registerState(const std::string& name, std::span<std::byte> bytes);
  /// The number of the newest checkpoint, which is loaded; nothing: there is none.
  std::optional<std::uint64_t> restore();
  /// What Falcon wants at the end of an iteration.
  struct Wanted {
    bool checkpoint = false, restart = false;
  };
  Wanted wanted(std::uint64_t iteration);
  void checkpoint(std::uint64_t number);
  /// Waits until it is written.
  void synchronizeCheckpoint();
  /// The code to exit with.
  int restart();

 private:
  struct Hooks;
  struct Ends;
  /// Tells Falcon the layout; false, on all ranks alike, where some rank's library does not offer that.
  bool registerLayout();

  RankParts layout_;
  int microBatches_;
  bool planned_ = false;
  Told told_;
  std::string checkpoints_;
  RoleTaker* taker_ = nullptr;
  std::vector<NamedState> room_;
  std::vector<ncclFalconBuffer> buffers_;  // of room_, as the library takes it
  CUstream_st* gradientStream_ = nullptr;  // null: sums are complete on return
  ncclComm* world_ = nullptr;
  ncclComm* data_ = nullptr;  // null where the group has one rank
  ncclComm* pipeline_ = nullptr;
  ncclComm* tensor_ = nullptr;
};

}  // namespace falcon::train
