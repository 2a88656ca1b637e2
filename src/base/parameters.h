// Every parameter, declared once. docs/environment.md is generated from these rows (`falcon parameters --markdown`).
#pragma once

#include "base/parameter.h"

namespace falcon::parameters {

// Switches.
inline constexpr SwitchParameter falcon{
    "NCCL_FALCON", false,
    "Switches Falcon on: detect, validate and report. 0 costs nothing. `falcon run` sets 1 unless it is set already."};
inline constexpr const char* engineWords[] = {"auto", "host", "vendor"};
inline constexpr ChoiceParameter engine{
    "NCCL_FALCON_ENGINE", engineWords, 0,
    "Which engine moves the data: the host engine, the vendor's NCCL, or (auto) the vendor's when the CUDA driver "
    "shows a device and the vendor's library loads."};
inline constexpr TextParameter vendorLibrary{
    "NCCL_FALCON_VENDOR_LIBRARY", "",
    "Path of the vendor's libnccl.so.2; empty: the one that is loaded already, libnccl-vendor.so.2 beside this "
    "library, the packages of the Python interpreter, the CUDA toolkit, the loader's folders."};
inline constexpr TextParameter job{"NCCL_FALCON_JOB", "",
                                   "Name of the job; empty: TORCHELASTIC_RUN_ID, SLURM_JOB_ID or the first unique id."};
inline constexpr const char* validateWords[] = {"off", "auto"};
inline constexpr ChoiceParameter validate{
    "NCCL_FALCON_VALIDATE", validateWords, 1,
    "Whether an onset may stop the job for a moment (a trap) to test processors and links."};
inline constexpr const char* mitigateWords[] = {"off", "advise", "auto"};
inline constexpr ChoiceParameter mitigate{
    "NCCL_FALCON_MITIGATE", mitigateWords, 1,
    "What follows a verdict: nothing, an event that says what would be done, or the deed."};
inline constexpr SwitchParameter deterministic{
    "NCCL_FALCON_DETERMINISTIC", false,
    "1 forbids mitigations that change the order of float sums (re-routed rings, topology changes)."};

// The trap.
inline constexpr NumberParameter trapBudget{"NCCL_FALCON_TRAP_BUDGET", 0.5, 0, 100,
                                            "Percent of the run time that automatic traps may take together; the first "
                                            "trap of a new onset is always allowed up to 5 s."};
inline constexpr DurationParameter trapTimeout{
    "NCCL_FALCON_TRAP_TIMEOUT", 10s, 1s, 10min,
    "Longest time a job is held for validation before it is let go unharmed."};
inline constexpr DurationParameter trapEntry{
    "NCCL_FALCON_TRAP_ENTRY", 30s, 100ms, 10min,
    "Longest wait until every rank is held, once a trap closes; then it is lifted everywhere."};
inline constexpr const char* trapDeathWords[] = {"release", "abort"};
inline constexpr ChoiceParameter trapDeath{
    "NCCL_FALCON_TRAP_DEATH", trapDeathWords, 0,
    "What becomes of the others when a rank dies while the job is held: they go on until they miss it (release), or "
    "all their communicators are aborted (abort)."};

// Checkpoints and restarts.
inline constexpr TextParameter checkpointFolder{
    "NCCL_FALCON_CHECKPOINT_DIR", "",
    "Folder of the job's checkpoints (ncclFalconCheckpoint, ncclFalconRestore); empty: the program names one."};
inline constexpr IntegerParameter checkpointKeep{
    "NCCL_FALCON_CHECKPOINT_KEEP", 2, 1, 1000,
    "How many of the newest checkpoints stay that are complete on all ranks; older ones are removed."};
inline constexpr TextParameter restartFile{
    "NCCL_FALCON_RESTART_FILE", "",
    "File that ncclFalconRestart writes its request to, for whoever starts the job again; empty: restart.json in "
    "NCCL_FALCON_CHECKPOINT_DIR. `falcon run --restarts` sets it."};
inline constexpr DurationParameter restartExpected{"NCCL_FALCON_RESTART_EXPECTED", 5min, 1s, 24h,
                                                   "What a restart takes from the request to the first iteration after "
                                                   "it, queueing included, until one of this job has "
                                                   "been measured. A restart waits until slowness has cost as much."};
inline constexpr IntegerParameter restartCode{
    "NCCL_FALCON_RESTART_CODE", 143, 1, 255,
    "Exit code with which a job asks to be started again (143: as if it was asked to end, which schedulers retry)."};

// Detection.
inline constexpr NumberParameter onsetThreshold{
    "NCCL_FALCON_ONSET_THRESHOLD", 10, 1, 1000,
    "Smallest lasting change of the iteration time, in percent, that counts as an onset. Half of it, for 200 "
    "iterations, is reported as minor."};
inline constexpr const char* periodWords[] = {"falcon", "acf"};
inline constexpr ChoiceParameter period{
    "NCCL_FALCON_PERIOD", periodWords, 0,
    "How iterations are found in the calls: by the repeat of the whole calls (falcon), or, for comparison, by the "
    "autocorrelation of their operations, at least 0.95 (acf), as the papers do."};
inline constexpr const char* nvtxWords[] = {"off", "auto"};
inline constexpr ChoiceParameter nvtx{
    "NCCL_FALCON_NVTX", nvtxWords, 1,
    "Whether the application's NVTX ranges are recorded (auto), where NVTX_INJECTION64_PATH names this library: "
    "`falcon run` sets that unless it is set already. off: neither."};
inline constexpr TextParameter events{"NCCL_FALCON_EVENTS", "",
                                      "File that the controller appends events to, one JSON object a line; empty: "
                                      "events.jsonl in the job's folder, /dev/shm/nccl-falcon-<uid>/<job>."};
inline constexpr IntegerParameter eventsSize{
    "NCCL_FALCON_EVENTS_SIZE", 16 << 20, 0, 1LL << 40,
    "Bytes after which the file of events becomes FILE.1 and a new one is begun; three older ones are kept. 0: never."};
inline constexpr TextParameter metrics{"NCCL_FALCON_METRICS", "",
                                       "File that the controller rewrites with Prometheus metrics; empty: none."};

// The host engine.
inline constexpr DurationParameter deathTimeout{
    "NCCL_FALCON_DEATH_TIMEOUT", 4s, 1s, 10min,
    "How long a peer's host may stay silent before the peer counts as dead (TCP keepalive and user timeout)."};
inline constexpr DurationParameter initTimeout{
    "NCCL_FALCON_INIT_TIMEOUT", 10min, 1s, 24h,
    "How long the making of a communicator waits for ranks that have not come."};
inline constexpr SwitchParameter checkCalls{
    "NCCL_FALCON_CHECK", false,
    "1: before every call the ranks compare what they call (operation, count, type, reduction, root) and a difference "
    "ends the communicator with an error that names the rank and the call. Slow; for finding errors. All ranks alike."};
inline constexpr TextParameter secret{
    "NCCL_FALCON_SECRET", "",
    "With NCCL_COMM_ID or NCCL_FALCON_COMM_ID: what a rank must know to join the job, the same on all ranks (unique "
    "ids have a secret of their own). Empty: none, and rank 0 says so. Never logged."};
inline constexpr TextParameter tuningFile{
    "NCCL_FALCON_TUNING_FILE", "",
    "File with the algorithms to use by operation, ranks and size, as `falcon tune` writes it; rank 0's counts for all "
    "ranks of a communicator. Empty: the built-in choice."};
inline constexpr TextParameter linkThrottleFile{"NCCL_FALCON_INJECT_LINK_FILE", "",
                                                "For demonstrations without network namespaces: a file with lines "
                                                "`from to bytes_per_second` (job ranks), read again when it changes."};

// NCCL's own, with NCCL's meaning.
inline constexpr IntegerParameter minChannels{"NCCL_MIN_NCHANNELS", 1, 1, 64, "Fewest channels of a communicator."};
inline constexpr IntegerParameter maxChannels{"NCCL_MAX_NCHANNELS", 2, 1, 64, "Most channels of a communicator."};
inline constexpr IntegerParameter bufferSize{
    "NCCL_BUFFSIZE", 1 << 20, 4096, 1LL << 30,
    "Bytes of the buffer between two ranks, per channel and direction; eight steps share it."};
inline constexpr TextParameter socketInterface{
    "NCCL_SOCKET_IFNAME", "", "Interfaces to use: prefixes, `^` excludes, `=` wants the exact name; comma list."};
inline constexpr const char* socketFamilyWords[] = {"any", "AF_INET", "AF_INET6"};
inline constexpr ChoiceParameter socketFamily{
    "NCCL_SOCKET_FAMILY", socketFamilyWords, 0,
    "Address family of the sockets between nodes; any: IPv4 where there is one."};
inline constexpr TextParameter hostId{"NCCL_HOSTID", "", "Names the node; ranks with the same name share memory."};
inline constexpr TextParameter commId{
    "NCCL_COMM_ID", "", "address:port of the rendezvous that rank 0 opens; all ranks then get the same unique id."};
inline constexpr TextParameter falconCommId{
    "NCCL_FALCON_COMM_ID", "",
    "Preloaded, with NCCL_COMM_ID: address:port of Falcon's own rendezvous, which rank 0 opens beside the vendor's; "
    "the "
    "same on all ranks, another port than NCCL_COMM_ID's. Empty: communicators that are made by NCCL_COMM_ID are not "
    "watched, and one INFO line says so."};
inline constexpr SwitchParameter shmDisable{"NCCL_SHM_DISABLE", false, "1: sockets only, inside a node too."};
inline constexpr SwitchParameter p2pDisable{"NCCL_P2P_DISABLE", false,
                                            "1: shared memory without reading another process's memory directly."};
inline constexpr TextParameter algorithm{
    "NCCL_ALGO", "",
    "Preferred algorithms, e.g. `ring`, `^tree`, `ring;allreduce:tree`. The host engine has Ring, and Tree for "
    "AllReduce; an operation without the preferred ones takes its default (one INFO line)."};
inline constexpr TextParameter protocol{
    "NCCL_PROTO", "", "Preferred protocols, in the same syntax. The host engine has Simple only (one INFO line)."};
inline constexpr TextParameter threads{"NCCL_NTHREADS", "", "For GPUs; the host engine ignores it (one INFO line)."};
inline constexpr TextParameter network{
    "NCCL_NET", "",
    "Name of the network to use between nodes, whatever its case: a net plugin's, or Socket. Where there is none of "
    "that name no communicator is made. Empty: the first plugin that is sound, else Socket."};
inline constexpr TextParameter netPlugin{
    "NCCL_NET_PLUGIN", "libnccl-net.so",
    "Net plugins to load, versions 6 to 12, as a list: paths, file names, names (`x` is libnccl-net-x.so), "
    "STATIC_PLUGIN (the program itself); none: no plugin. The first that is sound is used; docs/plugins.md."};
inline constexpr TextParameter profilerPlugin{
    "NCCL_PROFILER_PLUGIN", "",
    "Profiler plugin to load, versions 4 to 7: a path, a file name, a name (`x` is libnccl-profiler-x.so), "
    "STATIC_PLUGIN "
    "(the program itself). Empty or none: no plugin, not even libnccl-profiler.so; docs/plugins.md."};
inline constexpr const char* ownProfilerWords[] = {"auto", "off", "on"};
inline constexpr ChoiceParameter ownProfiler{"NCCL_FALCON_PROFILER", ownProfilerWords, 0,
                                             "Whether libnccl-profiler-falcon.so records. auto: with NCCL_FALCON=1. "
                                             "Where Falcon stands before NCCL or in its place, "
                                             "and is on, it records itself; then the plugin tells it what channels "
                                             "and proxies of the vendor's NCCL do, but with off; docs/plugins.md."};
inline constexpr TextParameter chainedProfiler{
    "NCCL_FALCON_CHAINED_PROFILER", "",
    "A profiler plugin that libnccl-profiler-falcon.so hands all events on to which it asks for, since NCCL takes one "
    "only; named as in NCCL_PROFILER_PLUGIN."};
inline constexpr TextParameter tunerPlugin{"NCCL_TUNER_PLUGIN", "",
                                           "Tuner plugin to load, versions 4 to 7, named like a profiler plugin (`x` "
                                           "is libnccl-tuner-x.so). Empty or none: no "
                                           "plugin; docs/plugins.md."};
inline constexpr TextParameter tunerRules{
    "NCCL_FALCON_TUNER_RULES", "",
    "A file with what libnccl-tuner-falcon.so is to steer away from, the same on all ranks; docs/plugins.md. Empty: "
    "nothing."};
inline constexpr const char* blockingWords[] = {"configured", "0", "1"};
inline constexpr ChoiceParameter blocking{
    "NCCL_COMM_BLOCKING", blockingWords, 0,
    "0 or 1: all communicators are nonblocking, or blocking, whatever their ncclConfig_t says."};
inline constexpr IntegerParameter socketThreads{"NCCL_SOCKET_NTHREADS", 1, 1, 16,
                                                "Times NCCL_NSOCKS_PERTHREAD: sockets of a connection, at most 64, "
                                                "over which its chunks go in turn. No threads are "
                                                "started: the caller drives them all."};
inline constexpr IntegerParameter socketsPerThread{"NCCL_NSOCKS_PERTHREAD", 1, 1, 16, "See NCCL_SOCKET_NTHREADS."};
inline constexpr TextParameter debug{"NCCL_DEBUG", "", "VERSION, WARN, INFO or TRACE."};
inline constexpr TextParameter debugFile{
    "NCCL_DEBUG_FILE", "",
    "Where log lines go instead of stderr (NCCL: instead of stdout); %h is the host, %p the process. Where the "
    "vendor's NCCL is in the process it has the file for itself, and Falcon's lines are in FILE.falcon."};

}  // namespace falcon::parameters
