// The extension API: callbacks at an iteration's end, with Falcon off and on.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>
#include <functional>
#include <vector>

#include "abi/ranks.h"

namespace falcon::abi {
namespace {

using testing::HasSubstr;

/// What a callback was told, and what it does beside.
struct Listener {
  std::vector<ncclFalconIterationEnd_t> ends{};
  std::function<void(const ncclFalconIterationEnd_t& end)> then{};

  static void hear(const ncclFalconIterationEnd_t* end, void* context) {
    auto& own = *static_cast<Listener*>(context);
    own.ends.push_back(*end);
    if (own.then) own.then(*end);
  }
  void listenTo(ncclComm_t comm, unsigned flags = 0) {
    NCCL_OK(ncclFalconIterationCallback(comm, &Listener::hear, this, flags));
  }
};

/// One replica with 6 micro-batches.
void registerLayoutOfOne(ncclComm_t comm) {
  const ncclFalconLayout_t layout{sizeof layout, 1, 1, 1, 0, 0, 0, 6};
  NCCL_OK(ncclFalconRegisterLayout(comm, &layout));
}

ncclFalconPlan_t beginIteration(ncclComm_t comm, std::uint64_t iteration) {
  ncclFalconPlan_t plan{sizeof plan, 99, 0, 0, 0};
  EXPECT_EQ(ncclFalconIterationBegin(comm, iteration, &plan), ncclSuccess) << ncclGetLastError(nullptr);
  return plan;
}

/// In a process of its own, with Falcon off and on: a communicator of one rank with a layout, and who listens.
class IterationCallback : public testing::TestWithParam<const char*> {
 protected:
  static void alone(const std::function<void(ncclComm_t& comm, Listener& listener)>& body) {
    const NamedJob job;
    inFreshChild({{"NCCL_FALCON", GetParam()}, {"NCCL_FALCON_JOB", job.name}}, [&] {
      Listener listener;
      Communicator comm{abi::alone()};
      registerLayoutOfOne(comm.handle);
      listener.listenTo(comm.handle);
      body(comm.handle, listener);
    });
  }
};

TEST_P(IterationCallback, IsToldWhatEndedAndWhatBegins) {
  alone([](ncclComm_t& comm, Listener& listener) {
    beginIteration(comm, 7);
    EXPECT_TRUE(listener.ends.empty()) << "nothing has ended";
    beginIteration(comm, 8);
    beginIteration(comm, 9);
    ASSERT_EQ(listener.ends.size(), 2u);
    const ncclFalconIterationEnd_t& end = listener.ends[1];
    EXPECT_EQ(end.size, sizeof end);
    EXPECT_EQ(end.iteration, 8u);
    EXPECT_EQ(end.next, 9u);
    EXPECT_GE(end.seconds, 0);
    EXPECT_LT(end.seconds, 60);
    EXPECT_EQ(end.health, NCCL_FALCON_HEALTH_UNKNOWN) << "no baseline";
    EXPECT_EQ(end.wanted, 0u);
    EXPECT_EQ(end.changed, 0u);
    EXPECT_EQ(end.microBatches, 6);
    EXPECT_EQ(end.firstMicroBatch, 0);
    EXPECT_EQ(end.gradientWeight, 1);
    EXPECT_EQ(end.planVersion, 0u);
  });
}

TEST_P(IterationCallback, ThePlanIsThereBeforeIt) {
  alone([](ncclComm_t& comm, Listener& listener) {
    ncclFalconPlan_t plan{sizeof plan, 99, 0, 0, 0};
    listener.then = [&](const ncclFalconIterationEnd_t&) { EXPECT_EQ(plan.microBatches, 6); };
    NCCL_OK(ncclFalconIterationBegin(comm, 0, &plan));
    plan.microBatches = 0;
    NCCL_OK(ncclFalconIterationBegin(comm, 1, &plan));
    EXPECT_EQ(listener.ends.size(), 1u);
  });
}

TEST_P(IterationCallback, IsReplacedAndRemovedAlsoByItself) {
  alone([](ncclComm_t& comm, Listener& first) {
    Listener second;
    beginIteration(comm, 0);
    first.then = [&](const ncclFalconIterationEnd_t&) { second.listenTo(comm); };
    beginIteration(comm, 1);
    EXPECT_EQ(first.ends.size(), 1u);
    second.then = [&](const ncclFalconIterationEnd_t&) {
      NCCL_OK(ncclFalconIterationCallback(comm, nullptr, nullptr, 0));
    };
    beginIteration(comm, 2);
    beginIteration(comm, 3);
    EXPECT_EQ(first.ends.size(), 1u);
    EXPECT_EQ(second.ends.size(), 1u);
    first.then = nullptr;
    first.listenTo(comm);
    beginIteration(comm, 4);
    EXPECT_EQ(first.ends.back().iteration, 3u);
  });
}

TEST_P(IterationCallback, MayDestroyItsCommunicator) {
  alone([](ncclComm_t& comm, Listener& listener) {
    beginIteration(comm, 0);
    listener.then = [&](const ncclFalconIterationEnd_t&) { NCCL_OK(ncclCommDestroy(std::exchange(comm, nullptr))); };
    ncclFalconPlan_t plan{sizeof plan, 99, 0, 0, 0};
    NCCL_OK(ncclFalconIterationBegin(comm, 1, &plan));
    EXPECT_EQ(plan.microBatches, 6);
    EXPECT_EQ(listener.ends.size(), 1u);
  });
}

TEST_P(IterationCallback, TellsNoEndInsideOfOne) {
  alone([](ncclComm_t& comm, Listener& listener) {
    beginIteration(comm, 0);
    listener.then = [&](const ncclFalconIterationEnd_t& end) { beginIteration(comm, end.next + 1); };
    beginIteration(comm, 1);
    EXPECT_EQ(listener.ends.size(), 1u);
    listener.then = nullptr;
    beginIteration(comm, 5);
    ASSERT_EQ(listener.ends.size(), 2u);
    EXPECT_EQ(listener.ends[1].iteration, 2u);
  });
}

// A thread registers and removes while another one's iterations go on: the thread sanitizer looks at this.
TEST_P(IterationCallback, ComesAndGoesFromAnyThread) {
  alone([](ncclComm_t& comm, Listener& listener) {
    std::atomic<bool> stop{false};
    std::thread other([&] {
      while (!stop) {
        EXPECT_EQ(ncclFalconIterationCallback(comm, nullptr, nullptr, 0), ncclSuccess);
        EXPECT_EQ(ncclFalconIterationCallback(comm, &Listener::hear, &listener, 0), ncclSuccess);
      }
    });
    for (std::uint64_t iteration = 0; iteration < 2000; ++iteration) beginIteration(comm, iteration);
    stop = true;
    other.join();
    for (const ncclFalconIterationEnd_t& end : listener.ends) EXPECT_EQ(end.next, end.iteration + 1);
  });
}

TEST_P(IterationCallback, NothingIsToldWhereNoIterationBegins) {
  alone([](ncclComm_t& comm, Listener& listener) {
    beginIteration(comm, 0);
    ncclFalconPlan_t plan{8, 99, 0, 0, 0};
    EXPECT_EQ(ncclFalconIterationBegin(comm, 1, &plan), ncclInvalidArgument);
    EXPECT_TRUE(listener.ends.empty());
    beginIteration(comm, 1);
    EXPECT_EQ(listener.ends.size(), 1u);
    // Of that communicator alone.
    const Communicator another{abi::alone()};
    registerLayoutOfOne(another.handle);
    beginIteration(another.handle, 0);
    beginIteration(another.handle, 1);
    EXPECT_EQ(listener.ends.size(), 1u);
  });
}

// All ranks do what is collective in their callbacks: nothing of the library's is held.
TEST_P(IterationCallback, MayDoWhatIsCollective) {
  const std::string folder = testing::TempDir() + "falcon-iterations-" + std::to_string(getpid());
  const NamedJob job;
  inFreshChild({{"NCCL_FALCON", GetParam()}, {"NCCL_FALCON_JOB", job.name}}, [&] {
    withRanks(3, [&](int rank, ncclComm_t comm) {
      const ncclFalconLayout_t layout{sizeof layout, 3, 1, 1, rank, 0, 0, 7};
      NCCL_OK(ncclFalconRegisterLayout(comm, &layout));
      int state = 5;
      NCCL_OK(ncclFalconRegisterState(comm, "state", &state, sizeof state, NCCL_FALCON_STATE_REPLICATED));
      Listener listener;
      listener.then = [&](const ncclFalconIterationEnd_t& end) {
        int all = 1;
        NCCL_OK(ncclAllReduce(&all, &all, 1, ncclInt, ncclSum, comm, noStream));
        EXPECT_EQ(all, 3);
        NCCL_OK(ncclFalconCheckpoint(comm, end.next, folder.c_str()));
        unsigned wanted = 7;
        NCCL_OK(ncclFalconWanted(comm, end.iteration, &wanted));
        EXPECT_EQ(wanted, end.wanted);
        ncclComm_t child = nullptr;
        NCCL_OK(ncclCommSplit(comm, 0, rank, &child, nullptr));
        NCCL_OK(ncclCommDestroy(child));
      };
      listener.listenTo(comm, NCCL_FALCON_CALLBACK_RESTARTS);
      for (const std::uint64_t iteration : {0, 1, 2, 3}) beginIteration(comm, iteration);
      ASSERT_EQ(listener.ends.size(), 3u);
      EXPECT_EQ(listener.ends[0].microBatches, rank == 0 ? 3 : 2);
      NCCL_OK(ncclFalconCheckpointSynchronize(comm));
    });
  });
  std::filesystem::remove_all(folder);
}

TEST_P(IterationCallback, IsToldThatItsRankHasAnotherRole) {
  const NamedJob job;
  inFreshChild({{"NCCL_FALCON", GetParam()}, {"NCCL_FALCON_JOB", job.name}}, [&] {
    withRanks(2, [&](int rank, ncclComm_t comm) {
      const ncclFalconLayout_t layout{sizeof layout, 2, 1, 1, rank, 0, 0, 3};
      NCCL_OK(ncclFalconRegisterLayout(comm, &layout));
      const auto nothing = [](void*, int, const ncclFalconBuffer_t**, size_t* count) {
        return *count = 0, ncclSuccess;
      };
      const ncclFalconReshapeHooks_t hooks{sizeof hooks, nullptr, nothing, nullptr, nullptr, nullptr, 0};
      NCCL_OK(ncclFalconRegisterReshape(comm, &hooks));
      Listener listener;
      listener.listenTo(comm);
      beginIteration(comm, 0);
      const int roles[] = {1, 0};
      NCCL_OK(ncclFalconReshape(comm, roles, 2));
      beginIteration(comm, 1);
      beginIteration(comm, 2);
      ASSERT_EQ(listener.ends.size(), 2u);
      EXPECT_EQ(listener.ends[0].changed, NCCL_FALCON_CHANGED_ROLE | NCCL_FALCON_CHANGED_MICRO_BATCHES);
      EXPECT_EQ(listener.ends[0].microBatches, rank == 0 ? 1 : 2);
      EXPECT_EQ(listener.ends[1].changed, 0u);
    });
  });
}
INSTANTIATE_TEST_SUITE_P(Falcon, IterationCallback, testing::Values("0", "1"),
                         [](const auto& its) { return std::string(*its.param == '1' ? "On" : "Off"); });

TEST(IterationCallbackArguments, AreNamedWhereTheyAreWrong) {
  const Communicator comm{alone()};
  EXPECT_EQ(ncclFalconIterationCallback(nullptr, &Listener::hear, nullptr, 0), ncclInvalidArgument);
  EXPECT_EQ(ncclFalconIterationCallback(comm.handle, &Listener::hear, nullptr, 6), ncclInvalidArgument);
  EXPECT_THAT(ncclGetLastError(nullptr), HasSubstr("NCCL_FALCON_CALLBACK_RESTARTS is the only one"));
  NCCL_OK(ncclFalconIterationCallback(comm.handle, nullptr, nullptr, 0));          // there is none
  NCCL_OK(ncclFalconIterationCallback(comm.handle, &Listener::hear, nullptr, 0));  // a layout may come later
}

}  // namespace
}  // namespace falcon::abi
