/* What Falcon's net plugins know of the network: how much they have moved, how long that took, and whether it is
 * congested.
 *
 * Each libnccl-net-falcon-*.so exports, beside ncclNetPlugin_v8 to _v12, one struct `falconNetState_v1`. Whoever has
 * opened the plugin finds it with dlsym(). A newer layout will be a struct of another name; this one stays as it is.
 * Plain C, no dependency.
 *
 * Threads: every function may be called by any thread at any time, also while NCCL uses the plugin.
 * Cost: a reading takes at most 32 connections' numbers from the kernel (about 1 us each), the others keep what they
 * had; their turn comes with the next reading. Of an RDMA device it reads eight files. Within
 * FALCON_NET_STATE_INTERVAL of the last reading nothing is taken anew, so asking more often costs a copy only. Nobody
 * who does not ask pays: nothing is sampled in the background. */
#ifndef FALCON_NET_STATE_H_
#define FALCON_NET_STATE_H_

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Nanoseconds between two readings at least: ten a second. NCCL_FALCON_NET_STATE_INTERVAL changes it. */
#define FALCON_NET_STATE_INTERVAL 100000000

/* Which fields are known: bits of `valid`. A field whose bit is not set is 0 and says nothing. Bytes, messages and what
 * is in flight are always known. */
#define FALCON_NET_SEND_WAIT 0x1u        /* sendWaitNanoseconds */
#define FALCON_NET_RTT 0x2u              /* rttNanoseconds, rttVariationNanoseconds, rttLeastNanoseconds */
#define FALCON_NET_RETRANSMITS 0x4u      /* retransmits, segments */
#define FALCON_NET_DELIVERY_RATE 0x8u    /* deliveryRate */
#define FALCON_NET_LIMITS 0x10u          /* busyNanoseconds, receiverLimitedNanoseconds, bufferLimitedNanoseconds */
#define FALCON_NET_ECN 0x20u             /* ecnMarked, delivered */
#define FALCON_NET_CNP 0x40u             /* congestionNotifications */
#define FALCON_NET_OUT_OF_SEQUENCE 0x80u /* outOfSequence */
#define FALCON_NET_NAKS 0x100u           /* negativeAcknowledgements */
#define FALCON_NET_PAUSE 0x200u          /* pauseFrames */
#define FALCON_NET_TRANSMIT_WAIT 0x400u  /* transmitWait */
#define FALCON_NET_INTERFACE 0x800u      /* interfaceBytes */
#define FALCON_NET_WIRE_BYTES 0x2000u    /* wireBytes */
#define FALCON_NET_SCORE 0x1000u         /* score, condition: not before the second reading in which data were sent */

/* What a score means. Unknown: nothing was sent between the last two readings. Healthy: below 0.1. Slow, 0.1 and more:
 * the network is what data wait for, but nobody else is seen to use it, as on a link that is limited. Congested: 0.1 or
 * more, half of a whole contention at least: others' traffic, marks of switches, or losses beyond the connection's
 * usual ones. */
enum { falconNetUnknown = 0, falconNetHealthy = 1, falconNetSlow = 2, falconNetCongested = 3 };

/* The score is
 *
 *     score = share * (0.45 * slowness + 0.55 * contention)
 *
 * of three numbers between 0 and 1, over the time between the last two readings of a sending connection:
 *
 * - share: of the time in which bytes were on their way and the network was what they waited for, neither the
 *   receiver's window nor the sender's own buffer (TCP: busy minus receiver-limited minus buffer-limited time, by the
 *   time that has passed).
 *
 * - slowness: how much longer a byte takes than it must. q / (q + 10 ms), where q is the round trip beyond the least
 * one seen: the time that data stand in queues. Or, where the network was waited for in more than 0.9 of the time, how
 * far the rate of the last five readings (segments delivered, times the bytes of a segment, times the connections of
 * this process that send more than a trickle over the interface; all of them where there are more than 32) stayed below
 * half of the connection's best, 1 - rate / (best / 2), if that is more.
 *
 * - contention: the largest of
 *
 *   - marks: segments that switches marked (ECN) by those delivered, against 5 %,
 *
 *   - losses: segments sent again by those sent, over ten readings, beyond twice the connection's own share in its
 * first ten and 1 %, against 5 % (a healthy connection under BBR retransmits 1.7 %: what is usual does not count),
 *
 *   - others: the share of other programs in what the interface sends, over five readings, where a round trip takes
 * more than 4 ms, against 25 %.
 *
 * Over RDMA the devices count, not the connections: share is as above, with the receiver's window being that it has not
 * asked for the message yet; slowness is the part of the time in which the port had data and was not let send;
 * contention the larger of notifications (CNPs) against one in 1 ms, and of packets lost against one in 1000.
 *
 * docs/net-state.md says where each comes from and what it was tested on. */

/* One end of a connection that is open. */
typedef struct {
  uint64_t id;       /* of this connection; never used again in this process */
  uint64_t sequence; /* how often its numbers were taken; as before: nothing is new */
  int64_t taken;     /* when: CLOCK_MONOTONIC, nanoseconds */
  uint32_t valid;    /* FALCON_NET_... */
  uint32_t device;   /* number, as the plugin counts them */
  int32_t sends;     /* 1: the sending end; 0: the receiving one, which has no score */
  int32_t sockets;   /* of which it is made; 1 where that means nothing */
  char peer[64];     /* the other end's address, for people */

  int32_t condition; /* falconNetHealthy ... */
  int32_t reserved;
  double score; /* 0: healthy, 1: as congested as can be */

  /* Since the connection was made. */
  uint64_t bytes;
  uint64_t messages;
  uint64_t wireBytes;           /* that the transport has sent, what it sent again too; without its headers */
  uint64_t sendWaitNanoseconds; /* in which a send was not done, whatever it waited for */
  uint64_t retransmits;         /* segments that were sent again */
  uint64_t segments;            /* that were sent */
  uint64_t busyNanoseconds;     /* in which bytes were on their way or waiting to be */
  uint64_t receiverLimitedNanoseconds;
  uint64_t bufferLimitedNanoseconds;
  uint64_t delivered; /* segments that have come */
  uint64_t ecnMarked; /* of them, those that a switch had marked */

  /* Now. */
  uint64_t bytesInFlight; /* given to the plugin and not yet done */
  uint64_t requestsInFlight;
  uint64_t rttNanoseconds; /* smoothed; of several sockets the largest */
  uint64_t rttVariationNanoseconds;
  uint64_t rttLeastNanoseconds;
  uint64_t deliveryRate; /* bytes/s, as the transport measures it; of several sockets the sum */
} falconNetConnection_v1;

/* One device. Its score is the largest of its connections'. */
typedef struct {
  char name[64]; /* of the interface: eth0, mlx5_0 */
  uint64_t sequence;
  int64_t taken;
  uint32_t valid;
  int32_t condition;
  double score;
  uint32_t connections; /* open ends */
  int32_t speed;        /* Mbit/s; 0: the system does not say */
  uint64_t bytesSent;   /* by this process, through the plugin, over all connections that ever were */
  uint64_t bytesReceived;
  uint64_t interfaceBytes;          /* sent by the interface, by whomever, since it exists */
  uint64_t congestionNotifications; /* RoCE: CNPs that came */
  uint64_t outOfSequence;
  uint64_t negativeAcknowledgements;
  uint64_t pauseFrames;
  uint64_t transmitWait; /* InfiniBand: ticks in which there were data and no credit */
} falconNetDevice_v1;

typedef struct {
  const char* plugin; /* as it names itself to NCCL */
  /* Copies at most `room` devices, or connections, into `states` and says in `count` how many there are; `count` may be
   * above `room`. `states` may be NULL where room is 0. Returns 0, or an ncclResult_t: 4 (invalid argument) where
   * `count` is NULL, or `states` though there is room; 2 (system error) where memory is short. Nothing is written then.
   */
  int (*devices)(falconNetDevice_v1* states, uint32_t room, uint32_t* count);
  int (*connections)(falconNetConnection_v1* states, uint32_t room, uint32_t* count);
} falconNetState_v1_t;

#define FALCON_NET_STATE_SYMBOL "falconNetState_v1"

#ifdef __cplusplus
}
#endif

#endif
