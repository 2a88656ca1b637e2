// The parameters of our net plugins and of those that are wrapped: rows as in parameters.h.
#pragma once

#include "base/parameter.h"

namespace falcon::parameters {

inline constexpr const char* netIoWords[] = {"auto", "io_uring", "epoll"};
inline constexpr int netIoByRing = 1;
inline constexpr ChoiceParameter netIo{
    "NCCL_FALCON_NET_IO", netIoWords, 0,
    "How falcon-socket moves bytes: by io_uring, where the kernel has it and lets us (containers forbid it mostly), or "
    "by trying and epoll. auto: what is faster here, epoll. io_uring that cannot be had is epoll, with one INFO line."};
inline constexpr TextParameter netCongestionControl{
    "NCCL_FALCON_NET_CONGESTION_CONTROL", "",
    "TCP congestion control of falcon-socket's connections, e.g. bbr or cubic. Empty: the system's."};
inline constexpr IntegerParameter netPiece{"NCCL_FALCON_NET_PIECE", 1 << 18, 4096, 1 << 30,
                                           "Bytes of the pieces in which falcon-socket spreads a message over a "
                                           "connection's sockets, where there are several."};
inline constexpr SwitchParameter netWrap{
    "NCCL_FALCON_NET_WRAP", false,
    "1: the requests of somebody else's net plugin are timed, and its connections shown by `falcon status --net`, "
    "without its knowing. Host engine."};
inline constexpr DurationParameter netStateInterval{
    "NCCL_FALCON_NET_STATE_INTERVAL", 100ms, 1ms, 1h,
    "How long our net plugins' congestion state counts as fresh: it is taken anew at most that often."};

}  // namespace falcon::parameters
