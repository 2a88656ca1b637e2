// A rank is killed at every step of an exchange of roles, between processes: the others are told or have succeeded,
// soon, and each has the whole state of the role that it says it has.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <map>
#include <string_view>

#include "harness/api_rank.h"

namespace {

// What this process dies of: the line of its log that says so.
std::string deadlyLine;
// Its log has said that the step after the move begins.
std::atomic<bool> moveIsOver{false};

}  // namespace

// The library's too: it says in its log that a step begins, by one call a line.
extern "C" __attribute__((visibility("default"))) ssize_t write(int file, const void* bytes, size_t count) {
  constexpr std::string_view afterTheMove = "ncclFalconReshape: step \"rebuild\"";
  if (!deadlyLine.empty() && memmem(bytes, count, deadlyLine.data(), deadlyLine.size())) raise(SIGKILL);
  if (memmem(bytes, count, afterTheMove.data(), afterTheMove.size())) moveIsOver = true;
  return syscall(SYS_write, file, bytes, count);
}

namespace falcon::test {
namespace {

// Two replicas of two stages, by role; ranks 1 and 2 exchange theirs.
constexpr int swapRanks = 4;
constexpr int swapped[swapRanks] = {0, 2, 1, 3};
constexpr std::size_t swapValues = 4'000'000;  // moving them takes milliseconds

int valueOf(int role, bool replicated) {
  return replicated ? 10 + role % 2 : 100 + role;
}

/// A rank's training, reduced to its state; dies in one of its own functions, or while state comes in.
class DyingTrainer {
 public:
  explicit DyingTrainer(std::string diesIn) : diesIn_(std::move(diesIn)) {}
  ~DyingTrainer() {
    ended_ = true;
    if (watching_.joinable()) watching_.join();
  }

  /// Makes the communicator of all ranks; with a log that tells the steps.
  std::string begin(const SharedBoard& board, const LogFile& log, int rank, ncclComm_t& job) {
    setenv("NCCL_FALCON", "0", 1);
    log.use("INFO");
    if (auto wrong = makeCommunicator(board, 0, rank, swapRanks, job); !wrong.empty()) return wrong;
    role_ = rank;
    if (ncclCommSplit(job, rank % 2, rank / 2, &data_, nullptr) != ncclSuccess) return "ncclCommSplit";
    const ncclFalconLayout_t layout{sizeof layout, 2, 2, 1, rank / 2, rank % 2, 0, 12};
    if (ncclFalconRegisterLayout(job, &layout) != ncclSuccess) return "ncclFalconRegisterLayout";
    fill(state_, rank);
    for (auto& [name, vector] : state_)
      if (ncclFalconRegisterState(job, name.c_str(), vector.data(), vector.size() * sizeof(int),
                                  name == "weights" ? NCCL_FALCON_STATE_REPLICATED : 0) != ncclSuccess)
        return "ncclFalconRegisterState";
    const ncclFalconReshapeHooks_t hooks{
        sizeof hooks, this, &DyingTrainer::prepare, &DyingTrainer::commit, &DyingTrainer::abandon, &data_, 1};
    return ncclFalconRegisterReshape(job, &hooks) == ncclSuccess ? "" : "ncclFalconRegisterReshape";
  }

  /// "" where the state, the role and the functions that were called are all of before, or all of after.
  std::string isWhole(ncclComm_t job, int rank, bool succeeded) const {
    const int expected = succeeded ? swapped[rank] : rank;
    int told = -1;
    if (ncclFalconRole(job, &told) != ncclSuccess) return "ncclFalconRole";
    if (told != expected || role_ != expected) return "the role is " + std::to_string(told);
    State whole;
    fill(whole, expected);
    if (state_ != whole) return "the state is not that of role " + std::to_string(expected);
    if (committed_ != (succeeded && swapped[rank] != rank)) return "commit() was called, or was not";
    if (abandoned_ != (prepared_ && !committed_)) return "abandon() was called, or was not";
    return "";
  }

 private:
  using State = std::map<std::string, std::vector<int>>;
  static void fill(State& state, int role) {
    state["weights"] = std::vector<int>(swapValues, valueOf(role, true));
    state["moments"] = std::vector<int>(swapValues, valueOf(role, false));
  }

  static ncclResult_t prepare(void* context, int, const ncclFalconBuffer_t** buffers, size_t* count) {
    auto& own = *static_cast<DyingTrainer*>(context);
    if (own.diesIn_ == "prepare()") raise(SIGKILL);
    own.prepared_ = true;
    for (const char* name : {"weights", "moments"}) {
      auto& vector = own.room_[name] = std::vector<int>(swapValues, -1);
      own.buffers_.push_back({name, vector.data(), vector.size() * sizeof(int)});
    }
    if (own.diesIn_ == "the middle of the move")
      own.watching_ = std::thread([&own] {
        const auto& moments = own.room_["moments"];
        const auto& weights = own.room_["weights"];
        const auto hasCome = [](const int& value) { return *const_cast<const volatile int*>(&value) != -1; };
        while (!own.ended_ && !moveIsOver)
          if (hasCome(moments.front()) || hasCome(weights.front())) raise(SIGKILL);
      });
    *buffers = own.buffers_.data();
    *count = own.buffers_.size();
    return ncclSuccess;
  }
  static void commit(void* context, int role) {
    auto& own = *static_cast<DyingTrainer*>(context);
    if (own.diesIn_ == "commit()") raise(SIGKILL);
    own.state_ = std::move(own.room_);
    own.role_ = role;
    own.committed_ = true;
  }
  static void abandon(void* context, int) { static_cast<DyingTrainer*>(context)->abandoned_ = true; }

  const std::string diesIn_;
  int role_ = -1;
  bool prepared_ = false, committed_ = false, abandoned_ = false;
  std::atomic<bool> ended_{false};
  ncclComm_t data_ = nullptr;
  State state_, room_;
  std::vector<ncclFalconBuffer_t> buffers_;
  std::thread watching_;
};

struct Death {
  const char* at;
  bool ofTheLibrary;  ///< a step that its log names; else of the program
  bool tells;         ///< the others cannot have succeeded
};
constexpr Death deaths[] = {{"agree", true, true},
                            {"prepare", true, true},
                            {"prepare()", false, true},
                            {"move", true, true},
                            {"the middle of the move", false, true},
                            {"rebuild", true, true},
                            {"commit", true, false},
                            {"commit()", false, false}};

/// False: the move was over before the victim saw that it was in the middle of it.
bool isKilled(int victim, const Death& death, Over over) {
  SCOPED_TRACE("rank " + std::to_string(victim) + " is killed at: " + death.at);
  const bool inTheMiddle = std::string(death.at) == "the middle of the move";
  constexpr int missed = 32;  // place on the board
  SharedBoard board;
  const auto logs = logsOf(swapRanks);
  ForkedRanks ranks(swapRanks, [&](int rank) -> std::string {
    choose(over);
    ncclComm_t comm = nullptr;
    DyingTrainer trainer(rank == victim && !death.ofTheLibrary ? death.at : "");
    if (auto wrong = trainer.begin(board, *logs[static_cast<std::size_t>(rank)], rank, comm); !wrong.empty())
      return wrong;
    if (rank == victim && death.ofTheLibrary) deadlyLine = "ncclFalconReshape: step \"" + std::string(death.at) + "\"";
    const auto start = std::chrono::steady_clock::now();
    const ncclResult_t result = ncclFalconReshape(comm, swapped, swapRanks);
    if (std::chrono::steady_clock::now() - start > Seconds(30)) return "it took long to be told";
    if (result != ncclSuccess && result != ncclRemoteError) return saying("ncclFalconReshape", result);
    if (inTheMiddle && rank == victim && result != ncclSuccess) return saying("nobody died, but", result);
    if (inTheMiddle && rank == victim) board.reach(missed, 1);
    if (inTheMiddle && result == ncclSuccess) {
      // Who has succeeded goes when all have, and the victim lives to tell of it.
      board.reach(rank, 1);
      for (int other = 0; other < swapRanks; ++other)
        if (!board.waitFor(other, 1)) return "it succeeded without rank " + std::to_string(other);
    } else if (death.tells && result == ncclSuccess) {
      return "it succeeded without rank " + std::to_string(victim);
    }
    if (auto wrong = trainer.isWhole(comm, rank, result == ncclSuccess); !wrong.empty()) return wrong;
    return ncclCommAbort(comm) == ncclSuccess ? "" : "ncclCommAbort";
  });
  const RankOutcome& itsEnd = ranks.wait(victim, Seconds(150));
  for (int rank = 0; rank < swapRanks; ++rank) {
    if (rank == victim) continue;
    EXPECT_EQ(ranks.wait(rank, Seconds(150)).report, "") << "rank " << rank;
  }
  EXPECT_EQ(itsEnd.report, "");
  if (inTheMiddle && board->steps[missed].load() == 1) return false;
  EXPECT_EQ(itsEnd.signal, SIGKILL);
  const std::string log = logs[static_cast<std::size_t>(victim)]->text();
  const bool wasInTheMove =
      log.find("step \"move\"") != std::string::npos && log.find("step \"rebuild\"") == std::string::npos;
  return wasInTheMove || !inTheMiddle;
}

/// On a busy machine who is to die in the move may get a processor when that is over: then once more.
void kill(int victim, const Death& death, Over over) {
  constexpr int tries = 50;
  for (int i = 0; i < tries && !testing::Test::HasFailure(); ++i)
    if (isKilled(victim, death, over)) return;
  ADD_FAILURE() << "rank " << victim << " at " << death.at << ": see above, or it never died in the move";
}

class KilledInASwap : public testing::TestWithParam<Over> {};

TEST_P(KilledInASwap, LeavesTheOthersWithTheWholeStateOfTheirRolesAtEveryStep) {
  for (const Death& death : deaths) kill(1, death, GetParam());
}

TEST_P(KilledInASwap, AlsoWhereItsOwnRoleStays) {
  for (const Death& death : deaths)
    if (death.ofTheLibrary) kill(3, death, GetParam());
}
INSTANTIATE_TEST_SUITE_P(Over, KilledInASwap, testing::ValuesIn(everyWay),
                         [](const auto& instance) { return nameOf(instance.param); });

// A step that is not named above is not tested.
TEST(KilledInASwap, KnowsAllSteps) {
  SharedBoard board;
  const auto logs = logsOf(swapRanks);
  ForkedRanks ranks(swapRanks, [&](int rank) -> std::string {
    ncclComm_t comm = nullptr;
    DyingTrainer trainer("");
    if (auto wrong = trainer.begin(board, *logs[static_cast<std::size_t>(rank)], rank, comm); !wrong.empty())
      return wrong;
    if (const auto done = ncclFalconReshape(comm, swapped, swapRanks); done != ncclSuccess)
      return saying("ncclFalconReshape", done);
    if (auto wrong = trainer.isWhole(comm, rank, true); !wrong.empty()) return wrong;
    return ncclCommAbort(comm) == ncclSuccess ? "" : "ncclCommAbort";
  });
  ASSERT_TRUE(ranks.allRight());
  const std::string log = logs[1]->text();
  std::size_t named = 0;
  for (const Death& death : deaths)
    if (death.ofTheLibrary) named += countOf(log, "step \"" + std::string(death.at) + "\"");
  EXPECT_EQ(named, countOf(log, "ncclFalconReshape: step")) << log;
  EXPECT_EQ(named, 5U);
}

}  // namespace
}  // namespace falcon::test
