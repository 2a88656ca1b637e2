// What is in NCCL's library and in no nccl.h, as nccl_device.h and its binaries have it. generate.py reads it as it
// does the header.
#pragma once

#include "nccl.h"

struct ncclTeam {
  int nRanks, rank, stride;
};
struct ncclMultimemHandle {
  void* base;
};

extern "C" {
void ncclResetDebugInitInternal(void);
ncclTeam_t ncclTeamCft(ncclComm_t comm, int mode);
ncclTeam_t ncclTeamCftMultimem(ncclComm_t comm);
}
