#include "control/role_baselines.h"

#include <gtest/gtest.h>

#include <numeric>

namespace falcon::control {
namespace {

constexpr CommunicatorId everybody = 1;

CommunicatorFormed formed(CommunicatorId id, std::vector<Rank> members) {
  CommunicatorFormed communicator;
  communicator.id = id;
  communicator.jobRanks = std::move(members);
  return communicator;
}

/// Two replicas of two stages by role; each role's baseline is its own.
JobView jobOf(const std::vector<int>& roles) {
  JobView job;
  for (Rank rank = 0; rank < 4; ++rank) {
    const ProcessId process = 100 + static_cast<ProcessId>(rank);
    const int role = roles[static_cast<std::size_t>(rank)];
    job.handle(process, Introduce{rank, "host", "", "", 1});
    PartKnown layout{2, 2, 1, role / 2, role % 2, 0, 8, {}};
    layout.role = role;
    job.handle(process, layout);
    MemberView& member = job.members()[process];
    member.healthy.emplace();
    member.healthy->duration = 0.1 * (role + 1);
    member.healthy->inLibrary = {{everybody, 0.5}, {static_cast<CommunicatorId>(20 + role % 2), 0.01 * role}};
    member.healthyTransfers = {.sums = {{.id = static_cast<CommunicatorId>(20 + role % 2), .peer = 1}},
                               .iterations = 3};
    member.recent.push_back({});
  }
  return job;
}

/// The data-parallel groups of the stages, with these ids, of who has the roles.
void addGroups(JobView& job, const std::vector<int>& roles, CommunicatorId first) {
  job.handle(100, formed(everybody, {0, 1, 2, 3}));
  for (int stage = 0; stage < 2; ++stage) {
    std::vector<Rank> members;
    for (const int role : {stage, 2 + stage})
      members.push_back(static_cast<Rank>(std::find(roles.begin(), roles.end(), role) - roles.begin()));
    job.handle(100, formed(first + static_cast<CommunicatorId>(stage), members));
  }
}

TEST(RoleBaselines, GoWithTheRolesAndTheirGroups) {
  const std::vector<int> before{0, 1, 2, 3}, now{1, 0, 3, 2};
  JobView job = jobOf(before);
  addGroups(job, before, 20);
  const auto communicators = job.communicators();
  for (const CommunicatorId gone : {20, 21}) job.handle(100, CommunicatorGone{gone});
  addGroups(job, now, 40);
  moveBaselines(job, communicators, before, now);
  for (Rank rank = 0; rank < 4; ++rank) {
    const MemberView& member = job.members().at(100 + static_cast<ProcessId>(rank));
    const int role = now[static_cast<std::size_t>(rank)];
    ASSERT_TRUE(member.healthy.has_value());
    EXPECT_DOUBLE_EQ(member.healthy->duration, 0.1 * (role + 1)) << rank;
    const auto group = static_cast<CommunicatorId>(40 + role % 2);
    EXPECT_EQ(member.healthy->inLibrary.size(), 2u);
    EXPECT_TRUE(member.healthy->inLibrary.contains(everybody)) << "it is what it was";
    ASSERT_TRUE(member.healthy->inLibrary.contains(group)) << rank;
    EXPECT_DOUBLE_EQ(member.healthy->inLibrary.at(group), 0.01 * role);
    EXPECT_EQ(member.healthyTransfers.sums.at(0).id, group);
    EXPECT_TRUE(member.recent.empty()) << "those are another role's iterations";
  }
}

TEST(RoleBaselines, KnowWhoHasWhichRole) {
  EXPECT_EQ(rolesOf(jobOf({2, 0, 1, 3})), (std::vector<int>{2, 0, 1, 3}));
  JobView silent;
  silent.handle(1, Introduce{2, "host", "", "", 1});
  EXPECT_EQ(rolesOf(silent), (std::vector<int>{0, 1, 2})) << "who has said nothing has its own";
}

}  // namespace
}  // namespace falcon::control
