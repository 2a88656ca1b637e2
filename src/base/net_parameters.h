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
inline constexpr TextParameter ibDevices{
    "NCCL_IB_HCA", "",
    "Ports of RDMA devices that falcon-verbs uses: beginnings of names, each with "
    "`:port` if one port only is meant; `^` excludes, `=` wants the exact name; comma list. Empty: all active ones."};
inline constexpr IntegerParameter ibGidIndex{
    "NCCL_IB_GID_INDEX", -1, -1, 254,
    "Index of the address (GID) that falcon-verbs sends from. -1: on RoCE the first of v2 with an IPv4 address, then "
    "with a global IPv6 one, then of the link; on InfiniBand 0."};
inline constexpr IntegerParameter ibTimeout{
    "NCCL_IB_TIMEOUT", 15, 1, 31,
    "falcon-verbs: a packet that is not acknowledged in T = 4.096 us times 2 to this power is sent again. A peer that "
    "is gone is known in (NCCL_IB_RETRY_CNT + 1) T to 4 times that: 1.1 s to 4.3 s. NCCL's own default is 20: 34 s to "
    "137 s."};
inline constexpr IntegerParameter ibRetries{"NCCL_IB_RETRY_CNT", 7, 0, 7, "How often that is done."};
inline constexpr IntegerParameter ibServiceLevel{"NCCL_IB_SL", 0, 0, 15, "Service level of falcon-verbs' packets."};
inline constexpr IntegerParameter ibTrafficClass{
    "NCCL_IB_TC", 0, 0, 255, "Traffic class of falcon-verbs' packets: on RoCE the DSCP, times four, and the ECN bits."};
inline constexpr SwitchParameter netWrap{
    "NCCL_FALCON_NET_WRAP", false,
    "1: the requests of somebody else's net plugin are timed, and its connections shown by `falcon status --net`, "
    "without its knowing. Host engine."};
inline constexpr DurationParameter netStateInterval{
    "NCCL_FALCON_NET_STATE_INTERVAL", 100ms, 1ms, 1h,
    "How long our net plugins' congestion state counts as fresh: it is taken anew at most that often."};

}  // namespace falcon::parameters
