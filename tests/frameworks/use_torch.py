"""What a user of PyTorch does without a GPU, in a form whose output is the same on every run.

use_torch.py import | ddp | loader | spawn
"""

import os
import sys

import torch


def importing():
    """Imports everything that loads NCCL, and asks it for an id."""
    import torch.distributed  # noqa: F401
    from torch.distributed import distributed_c10d  # noqa: F401

    print(torch.__version__, len(torch.cuda.nccl.unique_id()), torch.cuda.is_available())


def train(rank, size, port):
    """50 steps of DDP over gloo: a small model, the same on all ranks."""
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port), RANK=str(rank), WORLD_SIZE=str(size))
    torch.manual_seed(1)
    torch.set_num_threads(1)
    torch.distributed.init_process_group("gloo", rank=rank, world_size=size)
    model = torch.nn.parallel.DistributedDataParallel(
        torch.nn.Sequential(torch.nn.Linear(32, 64), torch.nn.ReLU(), torch.nn.Linear(64, 1)))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    generator = torch.Generator().manual_seed(rank)
    for _ in range(50):
        inputs = torch.randn(16, 32, generator=generator)
        loss = ((model(inputs) - inputs.sum(1, keepdim=True)) ** 2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    if rank == 0:
        print("parameters", " ".join(f"{parameter.double().sum().item():.6f}" for parameter in model.parameters()))
    torch.distributed.barrier()
    torch.distributed.destroy_process_group()


def free_port():
    import socket
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


class Squares(torch.utils.data.Dataset):
    def __len__(self):
        return 64

    def __getitem__(self, index):
        return index * index


def loading():
    """DataLoader workers, forked and spawned."""
    for method in ("fork", "spawn"):
        loader = torch.utils.data.DataLoader(Squares(), batch_size=8, num_workers=2, multiprocessing_context=method)
        print(method, sum(int(batch.sum()) for batch in loader))


def main():
    what = sys.argv[1] if len(sys.argv) > 1 else ""
    if what == "import":
        importing()
    elif what == "ddp":
        torch.multiprocessing.start_processes(train, args=(2, free_port()), nprocs=2, start_method="fork")
    elif what == "spawn":
        torch.multiprocessing.start_processes(train, args=(2, free_port()), nprocs=2, start_method="spawn")
    elif what == "loader":
        loading()
    else:
        sys.exit(__doc__)


if __name__ == "__main__":
    main()
