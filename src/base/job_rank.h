// Which rank of the job this process is, as its launcher says.
#pragma once

#include "base/types.h"

namespace falcon {

/// RANK, else OMPI_COMM_WORLD_RANK, PMI_RANK, SLURM_PROCID; -1 where none of them says.
Rank jobRankFromEnvironment();

}  // namespace falcon
