/* A program of a site's that is built against what was installed: sums over the ranks of its job, or alone. */
#include <nccl_falcon.h>
#include <stdio.h>
#include <stdlib.h>

static int number(const char* name, int otherwise) {
  const char* text = getenv(name);
  return text ? atoi(text) : otherwise;
}

int main(void) {
  const int rank = number("RANK", 0), size = number("WORLD_SIZE", 1);
  float mine = (float)rank + 1, sum = 0;
  int extension = 0;
  ncclUniqueId id;
  ncclComm_t comm;
  const char* port = getenv("MASTER_PORT");
  char address[64];
  if (size > 1) {
    snprintf(address, sizeof address, "127.0.0.1:%s", port ? port : "29555");
    setenv("NCCL_COMM_ID", address, 0);
  }
  if (ncclFalconGetVersion(&extension) || ncclGetUniqueId(&id) || ncclCommInitRank(&comm, size, id, rank)) return 1;
  if (ncclAllReduce(&mine, &sum, 1, ncclFloat, ncclSum, comm, NULL)) return 1;
  if (rank == 0) printf("sum over %d ranks: %g, extension %s\n", size, sum, extension == NCCL_FALCON_API_VERSION ? "as in the header" : "of another version");
  return ncclCommDestroy(comm) != ncclSuccess;
}
