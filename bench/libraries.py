"""The libraries that are measured, each at its best setting, and how each is started."""

import dataclasses
import os

CORES = len(os.sched_getaffinity(0))


@dataclasses.dataclass(frozen=True)
class Library:
    name: str
    command: object  # function (Setting, paths) -> list of words
    transports: tuple = ("shm", "tcp")
    environment: object = lambda setting: {}  # function Setting -> dict
    collectives: tuple = ()  # all of them if empty


@dataclasses.dataclass(frozen=True)
class Paths:
    drivers: str  # the folder of the drivers
    falcon: str  # the falcon command


def crowded(setting):
    return setting.ranks > CORES


def falcon_run(driver):
    def command(setting, paths):
        options = ["--cgroups"] if setting.cgroups else []
        return [paths.falcon, "run", "-n", str(setting.ranks), *options, "--", f"{paths.drivers}/{driver}"]
    return command


def ours(falcon):
    def environment(setting):
        sockets = {"NCCL_SHM_DISABLE": "1", "NCCL_SOCKET_IFNAME": "lo"} if setting.transport == "tcp" else {}
        return {"NCCL_FALCON": falcon, **sockets}
    return environment


def open_mpi(copy, *exports):
    """With more ranks than cores a waiting rank yields; else each has a core of its own."""
    def command(setting, paths):
        words = ["mpirun.openmpi", "-n", str(setting.ranks), "--mca", "pml", "ob1"]
        if os.geteuid() == 0:
            words += ["--allow-run-as-root"]
        if crowded(setting):
            words += ["--oversubscribe", "--bind-to", "none", "--mca", "mpi_yield_when_idle", "1"]
        else:
            words += ["--bind-to", "core"]
        if setting.transport == "tcp":
            words += ["--mca", "btl", "self,tcp", "--mca", "btl_tcp_if_include", "lo"]
        else:
            words += ["--mca", "btl", "self,vader", "--mca", "btl_vader_single_copy_mechanism", copy]
        for export in exports:
            words += ["-x", export]
        return [*words, f"{paths.drivers}/bench_openmpi"]
    return command


def mpich(setting, paths):
    binding = [] if crowded(setting) else ["-bind-to", "core"]
    return ["mpiexec.mpich", "-n", str(setting.ranks), *binding, f"{paths.drivers}/bench_mpich"]


def mpich_yielding(setting):
    return {"MPIR_CVAR_POLLS_BEFORE_YIELD": "1"} if crowded(setting) else {}


def mpich_ucx(setting):
    """Debian's MPICH is built upon UCX: this takes its transports within the machine too."""
    tls = {"UCX_TLS": "tcp,self", "UCX_NET_DEVICES": "lo"} if setting.transport == "tcp" else {"UCX_TLS": "posix,cma,self"}
    return {"MPIR_CVAR_NOLOCAL": "1", **tls, **mpich_yielding(setting)}


NO_MMAP = "MALLOC_MMAP_MAX_=0"

OURS = Library("ours", falcon_run("bench_nccl"), environment=ours("0"))
OURS_WATCHING = Library("ours NCCL_FALCON=1", falcon_run("bench_nccl"), environment=ours("1"))
COPY = Library("memcpy", lambda setting, paths: [f"{paths.drivers}/bench_copy", str(min(setting.ranks, CORES))])

PEERS = [
    Library("openmpi-cma", open_mpi("cma"), ("shm",)),
    Library("openmpi-cma-nommap", open_mpi("cma", NO_MMAP), ("shm",)),
    Library("openmpi", open_mpi("none")),
    Library("openmpi-nommap", open_mpi("none", NO_MMAP)),
    Library("mpich", mpich, ("shm",), mpich_yielding),
    Library("mpich-ucx", mpich, environment=mpich_ucx),
    Library("gloo", falcon_run("bench_gloo"), ("tcp",)),
    Library("gloo-bcube", falcon_run("bench_gloo"), ("tcp",), lambda setting: {"BENCH_GLOO_ALGORITHM": "bcube"},
            ("all_reduce",)),
]
