/* The extension API of NCCL Falcon: what a training framework may tell the library, and ask of it.
 * Every function is safe to call when Falcon is off (NCCL_FALCON unset or 0); it then does the obvious and succeeds,
 * but for Suspend and Resume, which cannot do what they say and return ncclInvalidUsage; checkpoints work all the same
 * (but see below). A program that must also run
 * on another libnccl.so.2 looks the functions up with dlsym(RTLD_DEFAULT, ...).
 *
 * Preloaded (libnccl-falcon.so), all of them are there, too, and work on the vendor's communicators, with these
 * differences: there is no host memory, so no host streams and no bitwise reductions (ncclFalconGetHostUniqueId,
 * ncclFalconStreamCreate and ncclFalconRedOpCreateBitwise: ncclInvalidUsage), and no roles are exchanged; of a
 * communicator that Falcon does not watch the plan is the equal split, and Suspend, Resume, Checkpoint, Restore and
 * Restart are ncclInvalidUsage, and iterations' ends are told with no health; while Falcon is off, trap callbacks and
 * state are not remembered; and ncclGetLastError, which is the vendor's, does not tell our errors: the log does. */
#ifndef NCCL_FALCON_H_
#define NCCL_FALCON_H_

#include <stddef.h>
#include <stdint.h>

#include "nccl.h"

#ifdef __cplusplus
extern "C" {
#endif

#define NCCL_FALCON_API_VERSION 14

/* The version of the running library's extension API, NCCL_FALCON_API_VERSION. Never fails with a valid pointer. */
ncclResult_t ncclFalconGetVersion(int* version);

/* As ncclGetUniqueId, for communicators of host memory (since version 12): what is made by this id, on any rank, is of
 * Falcon's host engine, also where there are GPUs. By an id of ncclGetUniqueId GPUs are used where all ranks have them,
 * or as NCCL_FALCON_ENGINE says. With NCCL_COMM_ID every process makes it for itself, as the other one. Preloaded:
 * ncclInvalidUsage. */
ncclResult_t ncclFalconGetHostUniqueId(ncclUniqueId* uniqueId);

/* How this rank takes part in hybrid parallelism. Sizes are >= 1; their product is the size of the job's communicator.
 * microBatches is the global number of micro-batches of one iteration, over all data-parallel replicas.
 *
 * What stands behind it (since version 9) says what a new split must keep to, and which nodes may exchange their
 * places; a program of an earlier version passes a smaller size, and 0 says nothing of it:
 * microBatchMultiple: every replica gets a multiple of it. An interleaved pipeline (Megatron's) needs its number of
 *   stages. Alike on all ranks.
 * leastMicroBatches, mostMicroBatches: what this rank must have, and what its memory has room for, in an iteration.
 * evenOnly: not 0: all replicas must have equally many, as where expert groups span them.
 * rail: which of the network's rails this rank's NIC is on, from 1; a rank takes no place of another rail's. */
typedef struct {
  size_t size; /* sizeof(ncclFalconLayout_t) */
  int dataParallelSize, pipelineParallelSize, tensorParallelSize;
  int dataParallelIndex, pipelineParallelIndex, tensorParallelIndex;
  int microBatches;
  int unused; /* where earlier versions have padding: not read */
  int microBatchMultiple;
  int leastMicroBatches, mostMicroBatches;
  int evenOnly;
  int rail;
} ncclFalconLayout_t;

/* Registers the layout. comm spans the job (all ranks of all groups); every rank calls once, after init.
 * Lets Falcon re-split micro-batches between replicas. Errors: ncclInvalidArgument names the field. */
ncclResult_t ncclFalconRegisterLayout(ncclComm_t comm, const ncclFalconLayout_t* layout);

/* The plan in force for one iteration. Replica d computes the global micro-batches
 * [firstMicroBatch, firstMicroBatch + microBatches); its mean gradient counts with gradientWeight = microBatches / all.
 */
typedef struct {
  size_t size; /* sizeof(ncclFalconPlan_t), set by the caller */
  uint64_t version;
  int microBatches;
  int firstMicroBatch;
  double gradientWeight;
} ncclFalconPlan_t;

/* Marks the start of an iteration and fetches the plan; a local call, no communication. Iterations count up from 0 and
 * all ranks pass the same numbers. All ranks get plans of the same version for the same iteration.
 * May hold the caller while the job is trapped or a new plan is being agreed. Errors: ncclInvalidUsage without a
 * layout. */
ncclResult_t ncclFalconIterationBegin(ncclComm_t comm, uint64_t iteration, ncclFalconPlan_t* plan);

/* Host streams (since version 2): they do for operations on host memory what CUDA streams do for those on a device.
 *
 * A host stream is passed where a cudaStream_t goes. A call then checks its arguments, queues the operation and
 * returns; the library carries it out on a thread of its own while the caller computes. NULL goes on meaning: complete
 * on return.
 *
 * Order: operations of a stream run one after the other, as queued. So do all operations of a communicator, whatever
 * streams they are on; one with NULL waits for those queued before, and none may be queued for its communicator, by
 * another thread or a callback, before it has returned. Different streams with different communicators run
 * side by side. A group is one operation on every stream that its calls name: it starts when those before it on all
 * these streams and of all its communicators are done, and all its calls end together; a group that also has host calls
 * with NULL waits for it in ncclGroupEnd.
 * Buffers, and the scalars of ncclScalarDevice, must stay valid and untouched from the call until the operation is
 * done; the scalars are read when it runs.
 *
 * Errors that are known at the call are returned by it, and nothing is queued. What goes wrong later is kept: the first
 * error of a stream is told by Query, and told and forgotten by Synchronize; ncclCommGetAsyncError tells it too,
 * where it broke the communicator. Operations behind one that failed are tried all the same.
 *
 * ncclCommFinalize, ncclCommSplit and ncclCommShrink wait for the communicator's queued operations. ncclCommDestroy
 * does not: they are carried out, then the memory is freed. ncclCommAbort and ncclCommRevoke end them with an error.
 *
 * Every function may be called from any thread, at any time. A stream belongs to its process: a forked child makes its
 * own. All ranks need not use streams alike on the host engine; with NCCL_FALCON_ENGINE=vendor a host stream says that
 * the call is for host memory, so that all ranks must pass one for the same operation. */
typedef cudaStream_t ncclFalconStream_t;

/* Makes a stream, and its thread. Errors: ncclSystemError (no thread can be had), ncclInvalidArgument. */
ncclResult_t ncclFalconStreamCreate(ncclFalconStream_t* stream);

/* Blocks until everything is done that was queued before. Errors: the stream's first since the last time;
 * ncclInvalidArgument for what is no stream (destroyed, a CUDA stream, another process's). NULL succeeds. */
ncclResult_t ncclFalconStreamSynchronize(ncclFalconStream_t stream);

/* ncclInProgress while there is work left; then the stream's first error, or ncclSuccess. Never blocks. */
ncclResult_t ncclFalconStreamQuery(ncclFalconStream_t stream);

/* Completion callbacks (since version 8): calls callback(result, context) when everything is done that was queued on
 * the stream before; what is queued later waits until it has returned. result is the first error of what ended on the
 * stream since the callback before, or ncclSuccess; in the callback ncclGetLastError(NULL) tells its text. Query and
 * Synchronize tell the same error all the same.
 *
 * It runs on the stream's thread, also after ncclFalconStreamDestroy, so that every callback that was accepted runs
 * once. It may call this library, and queue more; what waits for its own stream would wait for itself: Synchronize is
 * refused there (ncclInvalidUsage). Return soon, throw nothing. With NULL it is called before this returns.
 * Errors: ncclInvalidArgument for callback NULL, and for what is no stream, as above. */
typedef void (*ncclFalconStreamCallback_t)(ncclResult_t result, void* context);
ncclResult_t ncclFalconStreamCallback(ncclFalconStream_t stream, ncclFalconStreamCallback_t callback, void* context);

/* Takes no more work and returns; what is queued is still carried out, after which the thread ends. Synchronize first,
 * to know when buffers are free and whether all went well. NULL succeeds. Errors: ncclInvalidArgument, as above. */
ncclResult_t ncclFalconStreamDestroy(ncclFalconStream_t stream);

/* Bitwise reductions (since version 8): and, or, xor of integers' bits, which ncclRedOp_t has not. Makes an operation
 * of comm for elements of datatype, to be passed where ncclSum goes in AllReduce, Reduce and ReduceScatter and freed by
 * ncclRedOpDestroy. Local; all ranks must pass operations of the same kind to the same call.
 * For host memory only. Errors: ncclInvalidArgument (no such operation; no integer type: floats' bits are combined as
 * integers of their size); ncclInvalidUsage (the vendor's library moves the data). */
typedef enum { ncclFalconBitwiseAnd = 0, ncclFalconBitwiseOr = 1, ncclFalconBitwiseXor = 2 } ncclFalconBitwise_t;
ncclResult_t ncclFalconRedOpCreateBitwise(ncclRedOp_t* op, ncclFalconBitwise_t which, ncclDataType_t datatype,
                                          ncclComm_t comm);

/* Ranges (since version 3): names for what the application does between its calls, such as "forward", "backward",
 * "data" or "checkpoint". Falcon records them beside the calls, adds them up by iteration, and says which of them grew
 * when a job becomes slow. Local, from any thread; a few ten nanoseconds, and one branch while Falcon is off.
 *
 * Ranges of a thread nest: End ends the newest that the thread has begun. A range counts for the iteration that it ends
 * in, and so do the ranges inside of it. Up to 32 deep and 63 names of up to 39 characters; what is deeper is not
 * recorded, further names count as "other". Before the first communicator of the process nothing is recorded.
 * Errors: ncclInvalidArgument for NULL; ncclInvalidUsage for an End without a Begin, while Falcon is on. */
ncclResult_t ncclFalconRangeBegin(const char* name);
ncclResult_t ncclFalconRangeEnd(void);

/* Work (since version 7): how much there is to do in the iteration that is going on, in any unit that the time of an
 * iteration is proportional to: tokens that are not padding, say, or the sum of the sequences' squared lengths. Where
 * sequences differ in length iterations differ in time, and nothing is slow: Falcon then judges times by work. So tell
 * it in every iteration or in none, and in the same unit. Several calls in an iteration (a micro-batch each) add up.
 * Where the ranks' work differs, tell on all ranks what the iteration waits for: the most that a rank has to do.
 *
 * An iteration ends with its last collective (docs/iteration-time.md); what is told after it counts for the next one.
 * Local, from any thread; a few ten nanoseconds. It plans nothing: that is what ncclFalconIterationBegin is for.
 * Errors: ncclInvalidArgument for 0 or less, NaN and infinity. */
ncclResult_t ncclFalconIterationWork(double work);

/* Suspend and resume (since version 4): holds every rank of the job wherever it is in the library, at a call's entry or
 * in the middle of one, and lets it go on as if nothing had been. Data stay as they are; results do not change.
 *
 * The job is all processes that communicators join to that of comm. No rank has to do anything for it: one calls, from
 * any thread, at any time, and any one resumes. The calling thread is not held in these two functions; it and all
 * others are held at their next call, so the caller must not wait for other ranks before it has called Resume. Where
 * the vendor's engine moves the data, call them from a thread that makes no other calls: those that other ranks have
 * launched must still be made before all can be held.
 * A suspension ends by itself after limitMilliseconds (0: NCCL_FALCON_TRAP_TIMEOUT; an hour at most): everybody goes
 * on. Keep the limit below the framework's own watchdogs, or tell them (below). ncclCommAbort, ncclCommRevoke and
 * ncclCommGetAsyncError are never held. Docs: docs/trap.md.
 *
 * Suspend returns when all ranks are held. Errors: ncclInvalidUsage (suspended already; Falcon is off),
 * ncclSystemError (a rank stayed outside of the library for longer than NCCL_FALCON_TRAP_ENTRY, or the controller
 * changed: nobody is held), ncclRemoteError (a rank died).
 * Resume returns when all ranks have been told. Errors: ncclInvalidUsage (not suspended, or no longer; Falcon is off).
 */
ncclResult_t ncclFalconSuspend(ncclComm_t comm, unsigned int limitMilliseconds);
ncclResult_t ncclFalconResume(ncclComm_t comm);

/* Told in every process before the job is held and after it was let go, whoever asked for it: held is
 * NCCL_FALCON_SUSPENDED, NCCL_FALCON_TESTED (Falcon looks for a slow rank or link) or NCCL_FALCON_RELEASED;
 * limitMilliseconds is how long it takes at most. Every call with a reason is followed by one with RELEASED.
 * Runs on a thread of the library, which waits for it: return soon, and of this library call only these two functions,
 * ncclCommGetAsyncError and ncclCommAbort. */
#define NCCL_FALCON_RELEASED 0
#define NCCL_FALCON_SUSPENDED 1
#define NCCL_FALCON_TESTED 2
typedef void (*ncclFalconTrapCallback_t)(int held, unsigned int limitMilliseconds, void* context);

/* For the whole process, also before its first communicator. Errors: ncclInvalidArgument for NULL; Remove: that
 * callback with that context is not there. When Remove returns the callback will not run any more. */
ncclResult_t ncclFalconTrapCallbackAdd(ncclFalconTrapCallback_t callback, void* context);
ncclResult_t ncclFalconTrapCallbackRemove(ncclFalconTrapCallback_t callback, void* context);

/* Checkpoints and restarts (since version 10). The framework registers its state, has it kept now and then, and gets it
 * back when it starts again; Falcon may ask it to do so, where a rank is too slow to be worked around. Docs:
 * docs/restart.md. At an iteration's end:
 *
 *   ncclFalconWanted(comm, iteration, &wanted);
 *   if (isTime || (wanted & NCCL_FALCON_WANTED_CHECKPOINT)) ncclFalconCheckpoint(comm, iteration + 1, NULL);
 *   if (wanted & NCCL_FALCON_WANTED_RESTART) { ncclFalconRestart(comm, &code); clean up; exit(code); }
 *
 * State is host memory: of a device, register the copy in host memory that is taken at the iteration's end. It is
 * registered for a communicator of all ranks of the job, and forgotten when that is destroyed. What was copied by then
 * is still written, as long as the process lives: synchronize first, to know. */

/* Every data-parallel replica has the same (by the layout registered for comm): one of them writes, one reads and
 * broadcasts. Without it the state is this rank's own, as an optimiser's that is split over the replicas. */
#define NCCL_FALCON_STATE_REPLICATED 1u

/* bytes at pointer belong to the job's state. The name is 1 to 127 visible ASCII characters, and alike on all ranks
 * that have the same part. The memory must stay until it is unregistered. Local. Errors: ncclInvalidArgument (the name,
 * one that is taken, NULL, no bytes, unknown flags, device memory). */
ncclResult_t ncclFalconRegisterState(ncclComm_t comm, const char* name, void* pointer, size_t bytes,
                                     unsigned int flags);
/* Errors: ncclInvalidArgument where no state has the name. */
ncclResult_t ncclFalconUnregisterState(ncclComm_t comm, const char* name);

/* Keeps the state under this number in a folder (NULL: NCCL_FALCON_CHECKPOINT_DIR), which all ranks see or each host
 * has. The highest number is the newest. Returns when the state is copied in memory; it is written in the background,
 * and the next checkpoint waits for it. Of those that are complete on all ranks the NCCL_FALCON_CHECKPOINT_KEEP newest
 * stay. Collective over comm; all ranks pass the same number. Errors: ncclInvalidUsage (nothing registered, no folder,
 * different numbers; preloaded: comm is not watched), ncclSystemError (no memory), ncclRemoteError (a rank died). */
ncclResult_t ncclFalconCheckpoint(ncclComm_t comm, uint64_t iteration, const char* folder);

/* Waits until this rank's part of the last checkpoint is on the storage; it counts when all ranks' are. Local. Errors:
 * ncclSystemError: a checkpoint since the last time could not be written, the log says why. */
ncclResult_t ncclFalconCheckpointSynchronize(ncclComm_t comm);

/* Loads the newest checkpoint that is complete on all ranks, whose checksums are right and whose buffers are those that
 * are registered: *iteration gets its number, or NCCL_FALCON_NO_CHECKPOINT where there is none (nothing is changed
 * then). Collective over comm. Errors: ncclInvalidUsage as above; ncclSystemError: what was found could not be loaded
 * (the state is undefined then); ncclRemoteError. */
#define NCCL_FALCON_NO_CHECKPOINT UINT64_MAX
ncclResult_t ncclFalconRestore(ncclComm_t comm, const char* folder, uint64_t* iteration);

/* Whether Falcon wants something done at the end of this iteration: *wanted gets the sum of the flags, or 0. Local, the
 * same on all ranks for the same iteration; iterations count up and all ranks pass the same numbers. May hold the
 * caller while it is being agreed. Falcon asks for a restart only (NCCL_FALCON_MITIGATE=auto) where every process asks.
 */
#define NCCL_FALCON_WANTED_CHECKPOINT 1u
#define NCCL_FALCON_WANTED_RESTART 2u
ncclResult_t ncclFalconWanted(ncclComm_t comm, uint64_t iteration, unsigned int* wanted);

/* Asks whoever started the job to start it again from its newest checkpoint: waits until that is written, and writes
 * the request (NCCL_FALCON_RESTART_FILE; empty: restart.json in NCCL_FALCON_CHECKPOINT_DIR), which names whom to leave
 * out where Falcon wanted the restart, and nobody where the framework does. *exitCode gets what to exit with,
 * NCCL_FALCON_RESTART_CODE. Nothing else happens: the caller ends the process. Collective over comm. Errors:
 * ncclInvalidUsage (no place for the request; preloaded: comm is not watched), ncclSystemError (the checkpoint or the
 * request could not be written), ncclRemoteError. */
ncclResult_t ncclFalconRestart(ncclComm_t comm, int* exitCode);

/* Callbacks at an iteration's end (since version 14). An iteration ends where the next one begins: the function is
 * called by ncclFalconIterationBegin(comm, n), on the thread that calls that, for the iteration that was begun before.
 * So an iteration that no other follows has no such end, and neither has one whose successor's Begin fails. */

/* What Falcon thinks of the job. Ranks hear of it one after the other, within about a second. UNKNOWN: it is off, does
 * not watch comm, or has no healthy baseline yet; SUSPECTED: iterations have become slower, and it looks for the
 * reason; SLOW: a rank, a link or a host was named, and is not healthy again. */
#define NCCL_FALCON_HEALTH_UNKNOWN 0
#define NCCL_FALCON_HEALTH_HEALTHY 1
#define NCCL_FALCON_HEALTH_SUSPECTED 2
#define NCCL_FALCON_HEALTH_SLOW 3

/* What is another in the iteration that begins than in the one that ended. PLAN: the plan's version, alike on all
 * ranks. MICRO_BATCHES: how many or which micro-batches this rank computes, or what its gradient counts. ROLE: what
 * this rank does in the job (ncclFalconRole). */
#define NCCL_FALCON_CHANGED_PLAN 1u
#define NCCL_FALCON_CHANGED_MICRO_BATCHES 2u
#define NCCL_FALCON_CHANGED_ROLE 4u

typedef struct {
  size_t size;          /* of what is there: a later version of the library has more. Read nothing behind it */
  uint64_t iteration;   /* that has ended */
  uint64_t next;        /* that begins */
  double seconds;       /* from the return of the former's Begin to the call of the latter's, on this rank's clock */
  int health;           /* NCCL_FALCON_HEALTH_... */
  unsigned int wanted;  /* as ncclFalconWanted tells it for `iteration`; see NCCL_FALCON_CALLBACK_RESTARTS */
  unsigned int changed; /* the sum of NCCL_FALCON_CHANGED_..., or 0 */
  int microBatches;     /* this and those below: the plan of `next`, as in ncclFalconPlan_t */
  int firstMicroBatch;
  double gradientWeight;
  uint64_t planVersion;
} ncclFalconIterationEnd_t;

/* It is the last thing that ncclFalconIterationBegin does: the plan is in the caller's ncclFalconPlan_t, and nothing of
 * the library's is held or locked. So it may call every function of nccl.h and of this header, with any communicator,
 * those that are collective too (ranks get alike iterations and `wanted`): also ncclFalconCheckpoint, and
 * ncclCommDestroy of comm. But the plan of `next` stands: not ncclFalconRegisterLayout and ncclFalconReshape of comm.
 * Where it calls ncclFalconIterationBegin of comm, that tells no end. All ranks wait for one that is slow in it. `end`
 * is valid during the call. It returns, and throws nothing: an exception that leaves it may end the process, since the
 * library carries a C++ run-time of its own. */
typedef void (*ncclFalconIterationCallback_t)(const ncclFalconIterationEnd_t* end, void* context);

/* The function does what is wanted: that is asked for as by ncclFalconWanted, which then need not be called. Without it
 * `wanted` is what is decided already, and registering a function does not make Falcon ask for a restart. */
#define NCCL_FALCON_CALLBACK_RESTARTS 1u

/* Registers the function for comm, in the place of the one before; NULL removes it. Needs no layout yet, though
 * ncclFalconIterationBegin does. Local, from any thread, from the function itself, too: the next end is told to what
 * was registered last. Where another thread removes it, a call that has begun goes on. It is called no more once comm
 * is destroyed or aborted. While Falcon is off it is called all the same, with no health, nothing wanted and the equal
 * split. Errors: ncclInvalidArgument (comm, unknown flags); preloaded: ncclInvalidUsage (256 communicators have one or
 * a layout). */
ncclResult_t ncclFalconIterationCallback(ncclComm_t comm, ncclFalconIterationCallback_t callback, void* context,
                                         unsigned int flags);

/* Reshape (since version 11): between two iterations ranks exchange their roles, that is what they do in the job: which
 * stage, which replica, which shard. Processes and ranks stay as they are, since frameworks keep them; a role is
 * numbered by the rank that has it when the job begins. Host memory only. Docs: docs/reshape.md.
 *
 * State of a role that is registered (ncclFalconRegisterState) goes to the rank that takes the role, from whoever has
 * it. The communicators named in `groups` (of a job that is split as usual: data, pipeline, tensor) keep their handles;
 * what is behind them is made anew, so that each rank finds itself where its new role was. All others stay as they
 * were.
 *
 * All or nothing: the old state and the old groups stay until all ranks have the new ones; where anything fails on any
 * rank, all go on as before. A rank that dies meanwhile ends the job as at any other time. */
typedef struct ncclFalconBuffer {
  const char* name; /* as ncclFalconRegisterState knows it */
  void* pointer;
  size_t bytes;
} ncclFalconBuffer_t;

typedef struct {
  size_t size;   /* sizeof(ncclFalconReshapeHooks_t) */
  void* context; /* passed to the functions */
  /* Room for the state of a role that this process is to take, with that role's names and sizes. The array and the
   * buffers are the framework's; the buffers must stay until abandon or, after commit, as long as they are registered.
   * Anything but ncclSuccess: the job goes on as before. */
  ncclResult_t (*prepare)(void* context, int role, const ncclFalconBuffer_t** buffers, size_t* count);
  /* From now on this process has the role. What prepare gave is filled, and registered in the place of the state
   * before, which the framework may free. May be NULL. */
  void (*commit)(void* context, int role);
  /* All is as before; what prepare gave may be freed. May be NULL. */
  void (*abandon)(void* context, int role);
  /* Communicators whose members go by their roles, each at the same place on all ranks; NULL where there is none, on
   * all ranks alike. Copied. They must live as long as comm. */
  const ncclComm_t* groups;
  int groupCount;
} ncclFalconReshapeHooks_t;

/* For a communicator of all ranks of the job, on each of them. With NCCL_FALCON_MITIGATE=auto Falcon may then reshape
 * the job in ncclFalconIterationBegin. The functions are called from the thread that calls that, or ncclFalconReshape.
 * Local. Errors: ncclInvalidArgument names what is wrong; ncclInvalidUsage (the vendor's communicators). */
ncclResult_t ncclFalconRegisterReshape(ncclComm_t comm, const ncclFalconReshapeHooks_t* hooks);

/* Rank r of comm takes role roles[r]; roles has count entries, each of 0 to count - 1 once, the same on all ranks.
 * Collective over comm, between two iterations: nothing is queued or under way. Functions of hooks are called on those
 * ranks only whose role changes. Errors: nothing is changed, on all ranks, and the text says on which rank what failed;
 * ncclInvalidUsage (no hooks, different roles), ncclSystemError, ncclRemoteError. */
ncclResult_t ncclFalconReshape(ncclComm_t comm, const int* roles, int count);

/* The role of this rank. Local. Errors: ncclInvalidArgument. */
ncclResult_t ncclFalconRole(ncclComm_t comm, int* role);

/* The roles of all ranks of comm (since version 13): roles[r] is rank r's; count is the size of comm. Local.
 * Errors: ncclInvalidArgument. */
ncclResult_t ncclFalconRoles(ncclComm_t comm, int* roles, int count);

/* What a program may say about one collective (since version 5): an entry of the list `ext` of the ncclCollConfig_t
 * that it passes to ncclAllReduceConfig and its like. Another libnccl.so.2 ignores it.
 *
 *   ncclConfigExt_t iteration = {NULL, {NCCL_FALCON_VENDOR_ID, NCCL_FALCON_OPTION_ITERATION}, {.i = 17}};
 *   config.ext = &iteration;
 *
 * ITERATION: val.i, 0 or more, is the iteration that the call belongs to.
 * PHASE, GROUP (since version 6): val.i, 0 or more, is a number whose meaning is the program's: forward or backward,
 * say, and data-parallel or tensor-parallel.
 * They stand beside the call in the call log, as userProfilerTag does, and in what `falcon trace` shows; nothing is
 * decided by them, and no plan is fetched: that is what ncclFalconIterationBegin is for. Errors: ncclInvalidArgument
 * (below 0, a key twice, a list without an end); before the vendor's library, which ignores them all, such a call just
 * goes without labels. */
#define NCCL_FALCON_VENDOR_ID 0x46414c
#define NCCL_FALCON_OPTION_ITERATION 1
#define NCCL_FALCON_OPTION_PHASE 2
#define NCCL_FALCON_OPTION_GROUP 3

#ifdef __cplusplus
}
#endif

#endif
