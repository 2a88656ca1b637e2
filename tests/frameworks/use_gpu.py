"""What a user of PyTorch does on one GPU, in a form whose output is the same on every run but for the lines that begin with #.

use_gpu.py collectives | ddp | graph | again | cupy | jax [RANKS]
use_gpu.py job RANKS SECONDS SLOW_FROM SLOW_UNTIL

RANKS processes share the GPU: each is a node of its own to NCCL (NCCL_HOSTID), so they speak by sockets over loopback.
cupy is linked to NCCL, jax opens it by name. job trains for SECONDS, each rank on two processors of its own (cores_of);
its last rank loses 30 ms a step from second SLOW_FROM to second SLOW_UNTIL.
"""

import os
import socket
import statistics
import subprocess
import sys
import time


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def cores_of(rank):
    """The processors of a rank of `job`: whoever else runs on them makes it slow."""
    cores = sorted(os.sched_getaffinity(0))
    return [cores[place % len(cores)] for place in (2 * rank, 2 * rank + 1)]


def start_ranks(arguments, ranks):
    """Runs this file once for every rank and prints what each of them said, in the order of the ranks."""
    port = free_port()
    processes = []
    for rank in range(ranks):
        environment = dict(os.environ, RANK=str(rank), WORLD_SIZE=str(ranks), MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
        if ranks > 1:
            environment.update(NCCL_HOSTID=f"node{rank}", NCCL_SOCKET_IFNAME="lo")
        pinned = ["taskset", "-c", ",".join(map(str, cores_of(rank)))] if arguments[0] == "job" else []
        processes.append(subprocess.Popen([*pinned, sys.executable, __file__, *arguments], env=environment, stdout=subprocess.PIPE, text=True))
    said = [process.communicate()[0] for process in processes]
    for rank, lines in enumerate(said):
        for line in lines.splitlines():
            print(line if line.startswith("#") else f"{rank}: {line}")
    return max((abs(process.returncode) for process in processes), default=0)


def begin():
    import torch
    import torch.distributed as dist

    device = torch.device("cuda:0")
    torch.cuda.set_device(device)
    torch.backends.cuda.matmul.allow_tf32 = False
    dist.init_process_group("nccl", device_id=device)
    return torch, dist, device, dist.get_rank(), dist.get_world_size()


def collectives():
    torch, dist, device, rank, size = begin()

    def told(name, tensor):
        values = tensor.double()
        print(name, tensor.dtype, tuple(tensor.shape), values.sum().item(), values.square().sum().item())

    for kind in (torch.float32, torch.bfloat16, torch.int64):
        for count in (1, 1000, 1 << 20):
            own = ((torch.arange(count * size, device=device) % 7) + rank + 1).to(kind)
            part = own[:count].clone()
            for operation in (dist.ReduceOp.SUM, dist.ReduceOp.MAX, dist.ReduceOp.PRODUCT):
                whole = part.clone()
                dist.all_reduce(whole, operation)
                told("all_reduce", whole)
            gathered = torch.empty(count * size, dtype=kind, device=device)
            dist.all_gather_into_tensor(gathered, part)
            told("all_gather", gathered)
            share = torch.empty(count, dtype=kind, device=device)
            dist.reduce_scatter_tensor(share, own)
            told("reduce_scatter", share)
            exchanged = torch.empty_like(own)
            dist.all_to_all_single(exchanged, own)
            told("all_to_all", exchanged)
            spread = part.clone()
            dist.broadcast(spread, 0)
            told("broadcast", spread)
            dist.reduce(spread, size - 1)
            if rank == size - 1:
                told("reduce", spread)
            works = [dist.all_reduce(tensor, async_op=True) for tensor in (spread, whole)]
            for work in works:
                work.wait()
            told("two under way", spread)
            if size > 1:
                received = torch.empty_like(part)
                messages = [dist.P2POp(dist.isend, part, (rank + 1) % size), dist.P2POp(dist.irecv, received, (rank - 1) % size)]
                for work in dist.batch_isend_irecv(messages):
                    work.wait()
                told("sent round", received)
    everybody = dist.new_group(list(range(size)))
    alone = [dist.new_group([other]) for other in range(size)]
    tensor = torch.ones(100, device=device)
    dist.all_reduce(tensor, group=everybody)
    dist.all_reduce(tensor, group=alone[rank])
    told("in groups", tensor)
    several = [torch.full((100,), float(rank + place), device=device) for place in range(3)]
    with dist._coalescing_manager(device=device):
        for each in several:
            dist.all_reduce(each)
    told("coalesced", torch.stack(several))
    dist.barrier()
    dist.destroy_process_group()


def a_model(torch, device, width=1024):
    torch.manual_seed(1)
    layers = [layer for _ in range(6) for layer in (torch.nn.Linear(width, width), torch.nn.GELU())]
    net = torch.nn.parallel.DistributedDataParallel(torch.nn.Sequential(*layers).to(device), device_ids=[0])
    return net, torch.optim.SGD(net.parameters(), lr=0.05)


def a_step(torch, net, optimizer, generator, device, width=1024):
    inputs = torch.randn(256, width, device=device, generator=generator)
    loss = ((net(inputs) - inputs) ** 2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss


def ddp():
    torch, dist, device, rank, size = begin()
    net, optimizer = a_model(torch, device)
    generator = torch.Generator(device).manual_seed(rank)
    took = []
    for step in range(100 if size == 1 else 40):
        torch.cuda.synchronize()
        began = time.perf_counter()
        loss = a_step(torch, net, optimizer, generator, device)
        torch.cuda.synchronize()
        took.append(time.perf_counter() - began)
        if step % 10 == 0:
            print("loss", repr(loss.item()))
    print("parameters", *(repr(parameter.double().sum().item()) for parameter in net.parameters()))
    if rank == 0:
        print(f"# step {statistics.median(took) * 1e3:.3f} ms")
    dist.destroy_process_group()


def graph():
    torch, dist, device, rank, size = begin()
    tensor = torch.full((1000,), float(rank + 1), device=device)
    dist.all_reduce(tensor)
    torch.cuda.synchronize()
    captured = torch.cuda.CUDAGraph()
    with torch.cuda.graph(captured):
        dist.all_reduce(tensor, dist.ReduceOp.MAX)
        tensor += 1
    for _ in range(20):
        captured.replay()
    torch.cuda.synchronize()
    print("replayed", tensor.double().sum().item())
    dist.all_reduce(tensor)
    print("after", tensor.double().sum().item())
    # PyTorch wants the graph gone before the communicator whose kernels are in it.
    del captured
    torch.cuda.synchronize()
    dist.destroy_process_group()


def again():
    for turn in range(3):
        torch, dist, device, rank, _ = begin()
        tensor = torch.full((1000,), float(rank + turn), device=device)
        dist.all_reduce(tensor)
        print("turn", turn, tensor.double().sum().item())
        torch.cuda.synchronize()
        if turn == 1:
            dist.distributed_c10d._abort_process_group()
        else:
            dist.destroy_process_group()
        os.environ["MASTER_PORT"] = str(int(os.environ["MASTER_PORT"]) + 1)


def job(seconds, slow_from, slow_until):
    torch, dist, device, rank, size = begin()
    net, optimizer = a_model(torch, device)
    generator = torch.Generator(device).manual_seed(rank)
    began = last = time.monotonic()
    going, steps = torch.ones(1, device=device), 0
    while going.item() > 0:
        now = time.monotonic() - began
        if rank == size - 1 and slow_from <= now < slow_until:
            time.sleep(0.03)
        a_step(torch, net, optimizer, generator, device)
        going.fill_(1.0 if now < seconds else 0.0)
        dist.all_reduce(going, dist.ReduceOp.MIN)
        steps += 1
        if rank == 0 and time.monotonic() - last >= 2:
            print(f"# at {now:.0f} s: {(time.monotonic() - last) / steps * 1e3:.1f} ms a step", flush=True)
            last, steps = time.monotonic(), 0
    print("parameters", *(repr(parameter.double().sum().item()) for parameter in list(net.parameters())[:2]))
    dist.destroy_process_group()


def cupy_calls():
    import cupy
    from cupy.cuda import nccl

    rank, size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    address = ("127.0.0.1", int(os.environ["MASTER_PORT"]))
    if rank == 0:
        unique = nccl.get_unique_id()
        with socket.create_server(address) as server:
            for _ in range(size - 1):
                with server.accept()[0] as other:
                    other.sendall(unique)
    else:
        unique = b""
        while not unique:
            try:
                with socket.create_connection(address) as first:
                    while piece := first.recv(128):
                        unique += piece
            except ConnectionRefusedError:
                time.sleep(0.05)
    communicator = nccl.NcclCommunicator(size, unique, rank)
    stream = cupy.cuda.Stream.null.ptr
    print("version", nccl.get_version(), "rank", communicator.rank_id(), "of", communicator.size())
    for count in (1, 1000, 1 << 20):
        given = cupy.arange(count, dtype=cupy.float32) % 7 + rank
        summed, gathered = cupy.empty_like(given), cupy.empty(count * size, dtype=cupy.float32)
        communicator.allReduce(given.data.ptr, summed.data.ptr, count, nccl.NCCL_FLOAT32, nccl.NCCL_SUM, stream)
        communicator.allGather(given.data.ptr, gathered.data.ptr, count, nccl.NCCL_FLOAT32, stream)
        communicator.bcast(given.data.ptr, count, nccl.NCCL_FLOAT32, 0, stream)
        print(count, *(float(array.astype(cupy.float64).sum()) for array in (summed, gathered, given)))
    communicator.destroy()


def jax_calls():
    rank, size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    os.environ.update(XLA_PYTHON_CLIENT_PREALLOCATE="false")
    import jax
    import jax.numpy as jnp
    from jax.sharding import Mesh, NamedSharding, PartitionSpec

    jax.distributed.initialize(f"127.0.0.1:{os.environ['MASTER_PORT']}", size, rank, local_device_ids=[0])
    mesh = Mesh(jax.devices(), ("all",))
    sharded = NamedSharding(mesh, PartitionSpec("all"))

    def summed(part):
        return jax.lax.psum(part, "all")

    together = jax.jit(jax.shard_map(summed, mesh=mesh, in_specs=PartitionSpec("all"), out_specs=PartitionSpec()))
    for count in (1, 1000, 1 << 20):
        part = (jnp.arange(count) % 7 + rank).astype(jnp.float32)
        whole = jax.make_array_from_process_local_data(sharded, part, (count * size,))
        result = together(whole)
        print(count, float(result.addressable_data(0).sum()))
    jax.distributed.shutdown()


CASES = {"collectives": collectives, "cupy": cupy_calls, "jax": jax_calls, "ddp": ddp, "graph": graph, "again": again, "job": job}


def main():
    arguments = sys.argv[1:]
    if not arguments or arguments[0] not in CASES:
        sys.exit(__doc__)
    if "RANK" not in os.environ:
        sys.exit(start_ranks(arguments, int(arguments[1]) if len(arguments) > 1 else 1))
    CASES[arguments[0]](*(float(argument) for argument in arguments[2:]))


if __name__ == "__main__":
    main()
