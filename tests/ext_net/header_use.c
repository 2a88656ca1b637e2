/* falcon_net_state.h is C, and needs nothing else. */
#include "falcon_net_state.h"

int congested(const falconNetState_v1_t* state) {
  falconNetConnection_v1 connections[16];
  uint32_t count = 0, i, found = 0;
  if (state->connections(connections, 16, &count) != 0) return -1;
  for (i = 0; i < count && i < 16; ++i)
    if ((connections[i].valid & FALCON_NET_SCORE) && connections[i].condition == falconNetCongested) ++found;
  return (int)found;
}
