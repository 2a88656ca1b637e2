// nccl.h: the host side of the device API. All of it is the vendor's: it is passed on where the vendor moves the data.
#include "api/exports.h"

#include "api/passed_on.h"
#include "api/vendors_own_call.h"

using namespace falcon;
using namespace falcon::api;

/// As the CUDA toolkit's nccl_device.h has it; nccl.h leaves it opaque.
struct ncclTeam {
  int nRanks, rank, stride;
};
/// The same.
struct ncclMultimemHandle {
  void* base;
};

#pragma GCC visibility push(default)
extern "C" {
// In no header of ours: nccl_device.h declares their second argument's type.
ncclTeam_t ncclTeamCft(ncclComm_t comm, int mode);
ncclTeam_t pncclTeamCft(ncclComm_t comm, int mode);
ncclTeam_t ncclTeamCftMultimem(ncclComm_t comm);
ncclTeam_t pncclTeamCftMultimem(ncclComm_t comm);
}
#pragma GCC visibility pop

namespace {

constexpr ncclTeam noTeam{0, 0, 0};
constexpr int noRank = -1;

/// A function that tells something of a communicator without a result code; `nothing` where it cannot.
template <class Function, class Answer, class... Arguments>
Answer told(const char* name, Answer nothing, ncclComm_t comm, Arguments... arguments) {
  Answer answer = nothing;
  (void)passOnFor<Function>(name, comm, [&](Function* function, ncclComm_t handle) {
    answer = function(handle, arguments...);
    return ncclSuccess;
  });
  return answer;
}

}  // namespace

#define FALCON_PASS_ON(name, parameters, ...)                                                    \
  ncclResult_t p##name parameters {                                                              \
    FALCON_LET_VENDORS_OWN_PASS(name, __VA_ARGS__)                                               \
    return passOn<decltype(name)>(#name, [&](auto* function) { return function(__VA_ARGS__); }); \
  }
/// Of a communicator, which is their first argument: the others are named.
#define FALCON_PASS_ON_FOR(name, parameters, ...)                                                       \
  ncclResult_t p##name parameters {                                                                     \
    FALCON_LET_VENDORS_OWN_PASS(name, comm, __VA_ARGS__)                                                \
    return passOnFor<decltype(name)>(                                                                   \
        #name, comm, [&](auto* function, ncclComm_t handle) { return function(handle, __VA_ARGS__); }); \
  }

extern "C" {

FALCON_PASS_ON_FOR(ncclDevCommCreate,
                   (ncclComm_t comm, const ncclDevCommRequirements_t* requirements, ncclDevComm_t* outDevComm),
                   requirements, outDevComm)
FALCON_PASS_ON_FOR(ncclDevCommDestroy, (ncclComm_t comm, const ncclDevComm_t* devComm), devComm)
FALCON_PASS_ON_FOR(ncclGinBarrierCreateRequirement,
                   (ncclComm_t comm, ncclTeam_t team, int nBarriers, ncclGinBarrierHandle_t* outHandle,
                    ncclDevResourceRequirements_t* outReq),
                   team, nBarriers, outHandle, outReq)
FALCON_PASS_ON_FOR(ncclCommQueryProperties, (ncclComm_t comm, ncclCommProperties_t* props), props)
FALCON_PASS_ON(ncclLsaBarrierCreateRequirement,
               (ncclTeam_t team, int nBarriers, ncclLsaBarrierHandle_t* outHandle,
                ncclDevResourceRequirements_t* outReq),
               team, nBarriers, outHandle, outReq)
FALCON_PASS_ON(ncclLLA2ACreateRequirement,
               (int nBlocks, int nSlots, ncclLLA2AHandle_t* outHandle, ncclDevResourceRequirements_t* outReq), nBlocks,
               nSlots, outHandle, outReq)
FALCON_PASS_ON(ncclGinInboxA2ACreateRequirement,
               (ncclTeam_t peers, int nBlocks, int size_log2, ncclGinInboxA2AHandle_t* outHandle,
                ncclDevResourceRequirements_t* outReq),
               peers, nBlocks, size_log2, outHandle, outReq)
FALCON_PASS_ON(ncclGinOutboxCreateRequirement,
               (int nBlocks, int size_log2, ncclGinOutboxHandle_t* outHandle, ncclDevResourceRequirements_t* outReq),
               nBlocks, size_log2, outHandle, outReq)
FALCON_PASS_ON(ncclGetLsaDevicePointer, (ncclWindow_t window, size_t offset, int lsaRank, void** outPtr), window,
               offset, lsaRank, outPtr)
FALCON_PASS_ON(ncclGetLsaMultimemDevicePointer, (ncclWindow_t window, size_t offset, void** outPtr), window, offset,
               outPtr)
FALCON_PASS_ON(ncclGetMultimemDevicePointer,
               (ncclWindow_t window, size_t offset, ncclMultimemHandle_t multimem, void** outPtr), window, offset,
               multimem, outPtr)
FALCON_PASS_ON(ncclGetPeerDevicePointer, (ncclWindow_t window, size_t offset, int peer, void** outPtr), window, offset,
               peer, outPtr)
FALCON_PASS_ON(ncclGetCftDeviceLeInfo,
               (ncclWindow_t window, size_t offset, int peerCft, ncclTeam_t cftTeam, ncclCftLeId_t* leId,
                size_t* leOffset),
               window, offset, peerCft, cftTeam, leId, leOffset)
FALCON_PASS_ON(ncclGetMultimemDeviceLeInfo, (ncclWindow_t window, size_t offset, ncclCftLeId_t* leId, size_t* leOffset),
               window, offset, leId, leOffset)
FALCON_PASS_ON(ncclGetPeerDeviceLeInfo,
               (ncclWindow_t window, size_t offset, int peerWorld, ncclCftLeId_t* leId, size_t* leOffset), window,
               offset, peerWorld, leId, leOffset)

int pncclLLA2ACalcSlots(int maxElts, int maxEltSize) {
  FALCON_LET_VENDORS_OWN_PASS(ncclLLA2ACalcSlots, maxElts, maxEltSize)
  int slots = maxElts * ((maxEltSize + 7) / 8);  // of 8 bytes, as far as we know; a release may have it otherwise
  (void)guarded("ncclLLA2ACalcSlots", [&]() -> Status {
    const auto library = Process::instance().deviceLibrary();
    const auto theirs = library ? library->find<decltype(ncclLLA2ACalcSlots)>("ncclLLA2ACalcSlots") : nullptr;
    if (theirs) slots = theirs(maxElts, maxEltSize);
    return {};
  });
  return slots;
}

ncclTeam_t pncclTeamWorld(ncclComm_t comm) {
  FALCON_LET_VENDORS_OWN_PASS(ncclTeamWorld, comm)
  if (isVendors(comm)) return told<decltype(ncclTeamWorld)>("ncclTeamWorld", noTeam, comm);
  ncclTeam team = noTeam;
  (void)guarded("ncclTeamWorld", [&]() -> Status {
    const auto use = requireReady("ncclTeamWorld", comm);
    if (!use) return use.error();
    team = {(*use)->engine->size(), (*use)->engine->rank(), 1};
    return {};
  });
  return team;
}
ncclTeam_t pncclTeamLsa(ncclComm_t comm) {
  FALCON_LET_VENDORS_OWN_PASS(ncclTeamLsa, comm)
  return told<decltype(ncclTeamLsa)>("ncclTeamLsa", noTeam, comm);
}
ncclTeam_t pncclTeamRail(ncclComm_t comm) {
  FALCON_LET_VENDORS_OWN_PASS(ncclTeamRail, comm)
  return told<decltype(ncclTeamRail)>("ncclTeamRail", noTeam, comm);
}
ncclTeam_t pncclTeamCft(ncclComm_t comm, int mode) {
  FALCON_LET_VENDORS_OWN_PASS(ncclTeamCft, comm, mode)
  return told<decltype(ncclTeamCft)>("ncclTeamCft", noTeam, comm, mode);
}
ncclTeam_t pncclTeamCftMultimem(ncclComm_t comm) {
  FALCON_LET_VENDORS_OWN_PASS(ncclTeamCftMultimem, comm)
  return told<decltype(ncclTeamCftMultimem)>("ncclTeamCftMultimem", noTeam, comm);
}
int pncclTeamRankToWorld(ncclComm_t comm, ncclTeam_t team, int rank) {
  FALCON_LET_VENDORS_OWN_PASS(ncclTeamRankToWorld, comm, team, rank)
  return told<decltype(ncclTeamRankToWorld)>("ncclTeamRankToWorld", noRank, comm, team, rank);
}
int pncclTeamRankToLsa(ncclComm_t comm, ncclTeam_t team, int rank) {
  FALCON_LET_VENDORS_OWN_PASS(ncclTeamRankToLsa, comm, team, rank)
  return told<decltype(ncclTeamRankToLsa)>("ncclTeamRankToLsa", noRank, comm, team, rank);
}

}  // extern "C"

FALCON_WEAK_TWIN(ncclDevCommCreate);
FALCON_WEAK_TWIN(ncclDevCommDestroy);
FALCON_WEAK_TWIN(ncclGinBarrierCreateRequirement);
FALCON_WEAK_TWIN(ncclCommQueryProperties);
FALCON_WEAK_TWIN(ncclLsaBarrierCreateRequirement);
FALCON_WEAK_TWIN(ncclLLA2ACreateRequirement);
FALCON_WEAK_TWIN(ncclGinInboxA2ACreateRequirement);
FALCON_WEAK_TWIN(ncclGinOutboxCreateRequirement);
FALCON_WEAK_TWIN(ncclGetLsaDevicePointer);
FALCON_WEAK_TWIN(ncclGetLsaMultimemDevicePointer);
FALCON_WEAK_TWIN(ncclGetMultimemDevicePointer);
FALCON_WEAK_TWIN(ncclGetPeerDevicePointer);
FALCON_WEAK_TWIN(ncclGetCftDeviceLeInfo);
FALCON_WEAK_TWIN(ncclGetMultimemDeviceLeInfo);
FALCON_WEAK_TWIN(ncclGetPeerDeviceLeInfo);
FALCON_WEAK_TWIN(ncclLLA2ACalcSlots);
FALCON_WEAK_TWIN(ncclTeamWorld);
FALCON_WEAK_TWIN(ncclTeamLsa);
FALCON_WEAK_TWIN(ncclTeamRail);
FALCON_WEAK_TWIN(ncclTeamCft);
FALCON_WEAK_TWIN(ncclTeamCftMultimem);
FALCON_WEAK_TWIN(ncclTeamRankToWorld);
FALCON_WEAK_TWIN(ncclTeamRankToLsa);
