"""Small models train to the same losses as over gloo."""

import pytest
import torch
import torch.distributed as dist
import torch.nn as nn
from ranks import run_ranks

STEPS = 6


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.first = nn.Linear(width, 4 * width)
        self.second = nn.Linear(4 * width, width)

    def forward(self, inputs):
        return inputs + self.second(torch.relu(self.first(inputs)))


def model(width=16, blocks=4):
    torch.manual_seed(7)
    return nn.Sequential(*(Block(width) for _ in range(blocks)))


def batch(step, rank, width=16, rows=8):
    generator = torch.Generator().manual_seed(100 * step + rank)
    inputs = torch.randn(rows, width, generator=generator)
    return inputs, inputs.roll(1, dims=1)


def overall(loss):
    """The mean over the ranks."""
    loss = loss.detach().clone()
    dist.all_reduce(loss)
    return loss.item() / dist.get_world_size()


def train(net, optimizer, rank, forward=None):
    losses = []
    for step in range(STEPS):
        inputs, targets = batch(step, rank)
        loss = nn.functional.mse_loss((forward or net)(inputs), targets)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(overall(loss))
    return losses


def data_parallel(rank, hook=None):
    # Small buckets, so that several are under way; but PowerSGD's callbacks call collectives in no order between buckets.
    net = nn.parallel.DistributedDataParallel(model(), bucket_cap_mb=0.004 if hook != "powerSGD" else 25)
    if hook == "fp16":
        from torch.distributed.algorithms.ddp_comm_hooks.default_hooks import fp16_compress_hook

        net.register_comm_hook(None, fp16_compress_hook)
    if hook == "powerSGD":
        from torch.distributed.algorithms.ddp_comm_hooks import powerSGD_hook

        state = powerSGD_hook.PowerSGDState(None, matrix_approximation_rank=2, start_powerSGD_iter=2)
        net.register_comm_hook(state, powerSGD_hook.powerSGD_hook)
    return train(net, torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9), rank)


def fully_sharded(rank):
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard

    net = model()
    mesh = init_device_mesh("cpu", (dist.get_world_size(),))
    for block in net:
        fully_shard(block, mesh=mesh)
    fully_shard(net, mesh=mesh)
    return train(net, torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9), rank)


def tensor_parallel(rank):
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module

    net = model()
    mesh = init_device_mesh("cpu", (dist.get_world_size(),))
    plan = {}
    for i in range(len(net)):
        plan[f"{i}.first"] = ColwiseParallel()
        plan[f"{i}.second"] = RowwiseParallel()
    net = parallelize_module(net, mesh, plan)
    return train(net, torch.optim.SGD(net.parameters(), lr=0.05), 0)


def pipelined(rank):
    from torch.distributed.pipelining import PipelineStage, Schedule1F1B

    size = dist.get_world_size()
    whole = model()
    share = len(whole) // size
    part = nn.Sequential(*list(whole)[rank * share : (rank + 1) * share])
    stage = PipelineStage(part, rank, size, torch.device("cpu"))
    schedule = Schedule1F1B(stage, n_microbatches=4, loss_fn=nn.functional.mse_loss)
    optimizer = torch.optim.SGD(part.parameters(), lr=0.05)
    curve = []
    for step in range(STEPS):
        inputs, targets = batch(step, 0)
        optimizer.zero_grad()
        losses = []
        if rank == 0:
            schedule.step(inputs)
        elif rank == size - 1:
            schedule.step(target=targets, losses=losses)
        else:
            schedule.step()
        optimizer.step()
        mean = torch.stack(losses).mean().detach() if losses else torch.zeros(())
        dist.broadcast(mean, size - 1)
        curve.append(mean.item())
    return curve


def checkpointed(rank, folder):
    """Half the steps, a checkpoint of sharded state, and the rest in a fresh model."""
    import torch.distributed.checkpoint as checkpoint
    from torch.distributed.checkpoint.state_dict import get_model_state_dict, set_model_state_dict
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard

    mesh = init_device_mesh("cpu", (dist.get_world_size(),))

    def fresh():
        net = model()
        fully_shard(net, mesh=mesh)
        return net

    net = fresh()
    losses = train(net, torch.optim.SGD(net.parameters(), lr=0.05), rank)
    checkpoint.save({"model": get_model_state_dict(net)}, checkpoint_id=folder)
    again = fresh()
    state = {"model": get_model_state_dict(again)}
    checkpoint.load(state, checkpoint_id=folder)
    set_model_state_dict(again, state["model"])
    return losses + train(again, torch.optim.SGD(again.parameters(), lr=0.05), rank)


def compare(ranks, body, *arguments, other=None):
    ours = run_ranks(ranks, body, *arguments, timeout=90)
    theirs = run_ranks(ranks, body, *(other or arguments), backend="gloo", timeout=90)
    assert ours[0] and ours[0][-1] < ours[0][0]
    for mine, reference in zip(ours, theirs):
        assert mine == pytest.approx(reference, rel=1e-4)


@pytest.mark.parametrize("ranks", [2, 4])
@pytest.mark.parametrize("hook", [None, "fp16", "powerSGD"])
def test_data_parallel(ranks, hook):
    compare(ranks, data_parallel, hook)


@pytest.mark.parametrize("ranks", [2, 4])
@pytest.mark.parametrize("body", [fully_sharded, tensor_parallel, pipelined], ids=lambda body: body.__name__)
def test_parallel(body, ranks):
    compare(ranks, body)


def test_checkpoints(tmp_path):
    compare(2, checkpointed, str(tmp_path / "ours"), other=(str(tmp_path / "gloo"),))
