// nccl.h: the host side of the device API. There is no device code yet, so nothing here succeeds but plain arithmetic.
#include "api/exports.h"

#include "api/communicator.h"
#include "api/guard.h"

using namespace falcon;
using namespace falcon::api;

/// As the CUDA toolkit's nccl_device.h has it; nccl.h leaves it opaque.
struct ncclTeam {
  int nRanks, rank, stride;
};

namespace {

ncclResult_t refuse(const char* function) {
  return guarded(function, [&]() -> Status { return notImplemented(function); });
}

constexpr ncclTeam noTeam{0, 0, 0};
constexpr int noRank = -1;

}  // namespace

extern "C" {

ncclResult_t pncclDevCommCreate(ncclComm_t, const ncclDevCommRequirements_t*, ncclDevComm_t*) {
  return refuse("ncclDevCommCreate");
}
ncclResult_t pncclDevCommDestroy(ncclComm_t, const ncclDevComm_t*) {
  return refuse("ncclDevCommDestroy");
}
ncclResult_t pncclLsaBarrierCreateRequirement(ncclTeam_t, int, ncclLsaBarrierHandle_t*,
                                              ncclDevResourceRequirements_t*) {
  return refuse("ncclLsaBarrierCreateRequirement");
}
ncclResult_t pncclGinBarrierCreateRequirement(ncclComm_t, ncclTeam_t, int, ncclGinBarrierHandle_t*,
                                              ncclDevResourceRequirements_t*) {
  return refuse("ncclGinBarrierCreateRequirement");
}
ncclResult_t pncclLLA2ACreateRequirement(int, int, ncclLLA2AHandle_t*, ncclDevResourceRequirements_t*) {
  return refuse("ncclLLA2ACreateRequirement");
}

// A slot carries 8 bytes.
int pncclLLA2ACalcSlots(int maxElts, int maxEltSize) {
  return maxElts * ((maxEltSize + 7) / 8);
}

ncclTeam_t pncclTeamWorld(ncclComm_t comm) {
  ncclTeam team = noTeam;
  (void)guarded("ncclTeamWorld", [&]() -> Status {
    const auto use = requireReady("ncclTeamWorld", comm);
    if (!use) return use.error();
    team = {(*use)->engine->size(), (*use)->engine->rank(), 1};
    return {};
  });
  return team;
}
ncclTeam_t pncclTeamLsa(ncclComm_t) {
  (void)refuse("ncclTeamLsa");
  return noTeam;
}
ncclTeam_t pncclTeamRail(ncclComm_t) {
  (void)refuse("ncclTeamRail");
  return noTeam;
}
int pncclTeamRankToWorld(ncclComm_t, ncclTeam_t, int) {
  (void)refuse("ncclTeamRankToWorld");
  return noRank;
}
int pncclTeamRankToLsa(ncclComm_t, ncclTeam_t, int) {
  (void)refuse("ncclTeamRankToLsa");
  return noRank;
}

}  // extern "C"

FALCON_WEAK_TWIN(ncclDevCommCreate);
FALCON_WEAK_TWIN(ncclDevCommDestroy);
FALCON_WEAK_TWIN(ncclLsaBarrierCreateRequirement);
FALCON_WEAK_TWIN(ncclGinBarrierCreateRequirement);
FALCON_WEAK_TWIN(ncclLLA2ACreateRequirement);
FALCON_WEAK_TWIN(ncclLLA2ACalcSlots);
FALCON_WEAK_TWIN(ncclTeamWorld);
FALCON_WEAK_TWIN(ncclTeamLsa);
FALCON_WEAK_TWIN(ncclTeamRail);
FALCON_WEAK_TWIN(ncclTeamRankToWorld);
FALCON_WEAK_TWIN(ncclTeamRankToLsa);
