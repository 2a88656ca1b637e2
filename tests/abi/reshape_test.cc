// The extension API: ranks exchange their roles, with their state and their groups.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <numeric>

#include "abi/ranks.h"

namespace falcon::abi {
namespace {

using testing::HasSubstr;

// In constructors and destructors.
#define OK(call) EXPECT_EQ(ncclSuccess, call) << ncclGetLastError(nullptr)

constexpr int reshapeRanks = 4;

/// 2 replicas of 2 stages, by role.
ncclFalconLayout_t layoutOfRole(int role) {
  ncclFalconLayout_t layout{sizeof layout, 2, 2, 1, role / 2, role % 2, 0, 12};
  layout.microBatchMultiple = 4;  // 8 and 4, where 6 and 6 would be as equal as can be
  return layout;
}

/// A rank's training, reduced to what moves: weights of its stage, alike on all replicas, and moments of its own.
class Trainer {
 public:
  Trainer(int rank, ncclComm_t job) : rank_(rank), job_(job), role_(rank) {
    const auto layout = layoutOfRole(rank);
    OK(ncclFalconRegisterLayout(job, &layout));
    OK(ncclCommSplit(job, rank % 2, rank / 2, &data_, nullptr));
    OK(ncclCommSplit(job, rank / 2, rank % 2, &pipeline_, nullptr));
    for (auto& [name, values] : state_ = stateOf(rank))
      OK(ncclFalconRegisterState(job, name.c_str(), values.data(), values.size() * sizeof(int),
                                 name == "weights" ? NCCL_FALCON_STATE_REPLICATED : 0));
    const ncclComm_t groups[] = {data_, pipeline_};
    const ncclFalconReshapeHooks_t hooks{sizeof hooks, this, &Trainer::prepare, &Trainer::commit, &Trainer::abandon,
                                         groups,       2};
    OK(ncclFalconRegisterReshape(job, &hooks));
  }
  ~Trainer() {
    for (const ncclComm_t group : {data_, pipeline_}) OK(ncclCommDestroy(group));
  }

  /// Every group's members are those of this rank's role, in their order, and its state is that role's.
  void expectRole(int role) {
    int told = -1;
    NCCL_OK(ncclFalconRole(job_, &told));
    EXPECT_EQ(told, role);
    int everyones[reshapeRanks];
    NCCL_OK(ncclFalconRoles(job_, everyones, reshapeRanks));
    EXPECT_EQ(everyones[rank_], role);
    EXPECT_THAT(everyones, testing::UnorderedElementsAre(0, 1, 2, 3));
    EXPECT_EQ(role_, role);
    EXPECT_EQ(state_, stateOf(role)) << "rank " << rank_;
    int members[2] = {-1, -1};
    NCCL_OK(ncclAllGather(&role, members, 1, ncclInt, data_, nullptr));
    EXPECT_THAT(members, testing::ElementsAre(role % 2, 2 + role % 2));
    NCCL_OK(ncclAllGather(&role, members, 1, ncclInt, pipeline_, nullptr));
    EXPECT_THAT(members, testing::ElementsAre(role / 2 * 2, role / 2 * 2 + 1));
    // Messages too, which have their own connections.
    const int peer = 1 - role % 2;
    int sent = role, got = -1;
    NCCL_OK(ncclGroupStart());
    NCCL_OK(ncclSend(&sent, 1, ncclInt, peer, pipeline_, nullptr));
    NCCL_OK(ncclRecv(&got, 1, ncclInt, peer, pipeline_, nullptr));
    NCCL_OK(ncclGroupEnd());
    EXPECT_EQ(got, role / 2 * 2 + peer);
    ncclFalconPlan_t plan{sizeof plan, 0, 0, 0, 0};
    NCCL_OK(ncclFalconIterationBegin(job_, iteration_++, &plan));
    EXPECT_EQ(plan.microBatches, role / 2 == 0 ? 8 : 4);
    EXPECT_EQ(plan.firstMicroBatch, role / 2 == 0 ? 0 : 8);
  }

  bool refuses = false;
  int prepared = 0, abandoned = 0;

 private:
  using State = std::map<std::string, std::vector<int>>;

  /// Stages differ in size.
  static State stateOf(int role) {
    State state{{"weights", std::vector<int>(1000 + 5000 * static_cast<std::size_t>(role % 2))},
                {"moments", std::vector<int>(3 + static_cast<std::size_t>(role % 2))}};
    std::iota(state["weights"].begin(), state["weights"].end(), 7 * (role % 2));
    std::iota(state["moments"].begin(), state["moments"].end(), 100 * role);
    return state;
  }

  static ncclResult_t prepare(void* context, int role, const ncclFalconBuffer_t** buffers, size_t* count) {
    auto& own = *static_cast<Trainer*>(context);
    ++own.prepared;
    if (own.refuses) return ncclSystemError;
    own.room_ = stateOf(role);
    own.buffers_.clear();
    for (auto& [name, values] : own.room_) {
      std::fill(values.begin(), values.end(), -1);
      own.buffers_.push_back({name.c_str(), values.data(), values.size() * sizeof(int)});
    }
    *buffers = own.buffers_.data();
    *count = own.buffers_.size();
    return ncclSuccess;
  }
  static void commit(void* context, int role) {
    auto& own = *static_cast<Trainer*>(context);
    own.state_ = std::move(own.room_);
    own.role_ = role;
  }
  static void abandon(void* context, int) {
    auto& own = *static_cast<Trainer*>(context);
    own.room_.clear();
    ++own.abandoned;
  }

  const int rank_;
  const ncclComm_t job_;
  int role_;
  std::uint64_t iteration_ = 0;
  ncclComm_t data_ = nullptr, pipeline_ = nullptr;
  State state_, room_;
  std::vector<ncclFalconBuffer_t> buffers_;
};

using Environment = std::vector<std::pair<const char*, std::string>>;

void everybody(const char* falcon, Environment environment,
               const std::function<void(int rank, ncclComm_t job, Trainer& trainer)>& work) {
  const NamedJob job;
  environment.emplace_back("NCCL_FALCON", falcon);
  environment.emplace_back("NCCL_FALCON_JOB", job.name);
  inFreshChild(environment, [&] {
    withRanks(reshapeRanks, [&](int rank, ncclComm_t comm) {
      Trainer trainer(rank, comm);
      work(rank, comm, trainer);
    });
  });
}

class Reshaping : public testing::TestWithParam<std::tuple<const char*, bool>> {
 protected:
  const char* falcon() const { return std::get<0>(GetParam()); }
  /// Over sockets, or as ranks of a process are connected.
  Environment way() const {
    if (!std::get<1>(GetParam())) return {};
    return {{"NCCL_SHM_DISABLE", "1"}, {"NCCL_P2P_DISABLE", "1"}};
  }
};

TEST_P(Reshaping, GivesRolesWithTheirStateAndTheirGroupsAndTakesThemBack) {
  everybody(falcon(), way(), [](int rank, ncclComm_t job, Trainer& trainer) {
    trainer.expectRole(rank);
    // Two stages of two replicas; all round; back.
    for (const std::vector<int>& roles :
         {std::vector{1, 0, 2, 3}, std::vector{2, 3, 1, 0}, std::vector{3, 0, 1, 2}, std::vector{0, 1, 2, 3}}) {
      NCCL_OK(ncclFalconReshape(job, roles.data(), reshapeRanks));
      trainer.expectRole(roles[static_cast<std::size_t>(rank)]);
    }
    EXPECT_EQ(trainer.abandoned, 0);
  });
}

TEST_P(Reshaping, ThatARankRefusesChangesNothing) {
  everybody(falcon(), way(), [](int rank, ncclComm_t job, Trainer& trainer) {
    trainer.refuses = rank == 2;
    const int roles[] = {1, 0, 3, 2};
    EXPECT_NE(ncclFalconReshape(job, roles, reshapeRanks), ncclSuccess);
    EXPECT_THAT(ncclGetLastError(nullptr), AllOf(HasSubstr("nothing is changed"), HasSubstr("rank 2")));
    trainer.expectRole(rank);
    EXPECT_EQ(trainer.abandoned, rank == 2 ? 0 : 1) << "what was prepared is given back";
    trainer.refuses = false;
    NCCL_OK(ncclFalconReshape(job, roles, reshapeRanks));
    trainer.expectRole(roles[rank]);
  });
}
INSTANTIATE_TEST_SUITE_P(Falcon, Reshaping, testing::Combine(testing::Values("0", "1"), testing::Bool()),
                         [](const auto& its) {
                           return std::string(*std::get<0>(its.param) == '1' ? "On" : "Off") +
                                  (std::get<1>(its.param) ? "OverSockets" : "");
                         });

TEST(ReshapingArguments, AreNamedWhereTheyAreWrong) {
  everybody("0", {}, [](int rank, ncclComm_t job, Trainer& trainer) {
    const auto refused = [&](std::vector<int> roles, ncclResult_t expected, const char* word) {
      EXPECT_EQ(ncclFalconReshape(job, roles.data(), static_cast<int>(roles.size())), expected) << word;
      EXPECT_THAT(ncclGetLastError(nullptr), HasSubstr(word));
    };
    refused({0, 1, 2}, ncclInvalidArgument, "3 roles for 4 ranks");
    refused({0, 1, 2, 2}, ncclInvalidArgument, "two ranks take role 2");
    refused({0, 1, 2, 4}, ncclInvalidArgument, "role 4");
    refused(rank == 3 ? std::vector{0, 1, 3, 2} : std::vector{1, 0, 2, 3}, ncclInvalidUsage, "the same");
    trainer.expectRole(rank);
    EXPECT_EQ(ncclFalconReshape(job, nullptr, reshapeRanks), ncclInvalidArgument);
    EXPECT_EQ(ncclFalconRole(job, nullptr), ncclInvalidArgument);
    EXPECT_EQ(ncclFalconRoles(job, nullptr, reshapeRanks), ncclInvalidArgument);
    int two[2];
    EXPECT_EQ(ncclFalconRoles(job, two, 2), ncclInvalidArgument);
    EXPECT_THAT(ncclGetLastError(nullptr), HasSubstr("room for 2 roles of 4 ranks"));
    EXPECT_EQ(ncclFalconRegisterReshape(job, nullptr), ncclInvalidArgument);
    ncclFalconReshapeHooks_t hooks{sizeof hooks, nullptr, nullptr, nullptr, nullptr, nullptr, 0};
    EXPECT_EQ(ncclFalconRegisterReshape(job, &hooks), ncclInvalidArgument);
    EXPECT_THAT(ncclGetLastError(nullptr), HasSubstr("prepare is NULL"));
    hooks.size = 8;
    EXPECT_EQ(ncclFalconRegisterReshape(job, &hooks), ncclInvalidArgument);
    EXPECT_THAT(ncclGetLastError(nullptr), HasSubstr("sizeof(ncclFalconReshapeHooks_t)"));
  });
}

TEST(ReshapingArguments, WithoutHooksThereIsNoReshape) {
  inFreshChild({{"NCCL_FALCON", "0"}}, [] {
    const Communicator comm{alone()};
    const int roles[] = {0};
    EXPECT_EQ(ncclFalconReshape(comm.handle, roles, 1), ncclInvalidUsage);
    EXPECT_THAT(ncclGetLastError(nullptr), HasSubstr("ncclFalconRegisterReshape"));
    int role = -1;
    NCCL_OK(ncclFalconRole(comm.handle, &role));
    EXPECT_EQ(role, 0);
  });
}

}  // namespace
}  // namespace falcon::abi
