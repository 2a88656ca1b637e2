"""Uneven splits of the micro-batches, state, and the layout (nccl_falcon.torch)."""

import contextlib
import json
import re
from pathlib import Path

import pytest
import torch
import torch.distributed as dist
import torch.distributed.tensor
import torch.nn as nn
from ranks import run_ranks

import nccl_falcon
import nccl_falcon.torch as falcon

DOCUMENT = Path(__file__).parents[2] / "docs" / "pytorch.md"
STEPS, MICRO_BATCHES, WIDTH = 6, 8, 16


def model():
    torch.manual_seed(7)
    return nn.Sequential(nn.Linear(WIDTH, 64), nn.ReLU(), nn.Linear(64, WIDTH))


def micro_batch(step, number):
    generator = torch.Generator().manual_seed(100 * step + number)
    inputs = torch.randn(4, WIDTH, generator=generator)
    return inputs, inputs.roll(1, dims=1)


def train(net, share, first, count):
    optimizer = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9)
    losses = []
    for step in range(STEPS):
        total = torch.zeros(())
        for number in range(first, first + count):
            net.require_backward_grad_sync = number == first + count - 1
            inputs, targets = micro_batch(step, number)
            loss = nn.functional.mse_loss(net(inputs), targets)
            (loss / count).backward()
            total += loss.detach() / MICRO_BATCHES
        optimizer.step()
        optimizer.zero_grad()
        dist.all_reduce(total)
        losses.append(total.item())
    return losses


def split_training(rank, split, weighted):
    count = split[rank]
    share = falcon.GradientShare(count / MICRO_BATCHES)
    net = nn.parallel.DistributedDataParallel(model(), bucket_cap_mb=0.004)
    if weighted:
        net.register_comm_hook(share, falcon.share_gradients)
    return train(net, share, sum(split[:rank]), count)


def test_an_uneven_split_trains_as_an_even_one():
    even = run_ranks(2, split_training, [4, 4], False)[0]
    uneven = run_ranks(2, split_training, [1, 7], True)[0]
    unweighted = run_ranks(2, split_training, [1, 7], False)[0]
    assert even[-1] < even[0]
    assert uneven == pytest.approx(even, rel=1e-5)
    # Without weights it is another training, so that the comparison can tell.
    assert unweighted != pytest.approx(even, rel=1e-4)


def pipelined(rank, split):
    """Two replicas of two stages; gives the losses of all micro-batches."""
    from torch.distributed.pipelining import PipelineStage, Schedule1F1B

    data_index, stage_index = divmod(rank, 2)
    pipelines = [dist.new_group([2 * each, 2 * each + 1]) for each in (0, 1)]
    replicas = [dist.new_group([each, 2 + each]) for each in (0, 1)]
    count, first = split[data_index], sum(split[:data_index])
    share = falcon.GradientShare(count / MICRO_BATCHES, replicas[stage_index])
    net = model()
    net = (net[:2], net[2:])[stage_index]
    stage = PipelineStage(net, stage_index, 2, torch.device("cpu"), group=pipelines[data_index])
    schedule = Schedule1F1B(stage, count, loss_fn=nn.functional.mse_loss)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9)
    losses = []
    for step in range(STEPS):
        pairs = [micro_batch(step, number) for number in range(first, first + count)]
        inputs, targets = (torch.cat(parts) for parts in zip(*pairs))
        each = []
        if stage_index == 0:
            schedule.step(inputs)
        else:
            schedule.step(target=targets, losses=each)
        falcon.sum_gradients(share, stage.submod.parameters())
        optimizer.step()
        optimizer.zero_grad()
        total = sum(each, torch.zeros(())).detach() / MICRO_BATCHES
        dist.all_reduce(total)
        losses.append(total.item())
    return losses


def test_an_uneven_split_of_pipelines_trains_as_an_even_one():
    even = run_ranks(4, pipelined, [4, 4])[0]
    assert even[-1] < even[0]
    assert run_ranks(4, pipelined, [2, 6])[0] == pytest.approx(even, rel=1e-5)


def documented(rank):
    """The loop of docs/pytorch.md, as it stands there but for its length."""
    loop = re.search("^```python\njob = (.*?)^```", DOCUMENT.read_text(), re.DOTALL | re.MULTILINE)[0]
    loop = loop.removeprefix("```python\n").removesuffix("```").replace("range(1000)", "range(5)")
    net = nn.parallel.DistributedDataParallel(model())
    losses = {}

    def loss_of(number):
        inputs, targets = micro_batch(0, number)
        losses[number] = nn.functional.mse_loss(net(inputs), targets)
        return losses[number]

    optimizer = torch.optim.SGD(net.parameters(), lr=0.05)
    names = {"rank": rank, "net": net, "optimizer": optimizer, "loss_of": loss_of}
    exec(loop, {"contextlib": contextlib, "nccl_falcon": nccl_falcon, **names})
    return {number: loss.item() for number, loss in losses.items()}


def test_the_documented_loop_trains_on_all_micro_batches():
    losses = {number: loss for rank in run_ranks(4, documented) for number, loss in rank.items()}
    net = model()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.05)
    for _ in range(5):
        alone = [nn.functional.mse_loss(net(inputs), targets) for inputs, targets in (micro_batch(0, each) for each in range(16))]
        (sum(alone) / 16).backward()
        optimizer.step()
        optimizer.zero_grad()
    assert losses == pytest.approx({number: loss.item() for number, loss in enumerate(alone)}, rel=1e-5)


def planned(rank):
    job = falcon.Job(falcon.Layout(MICRO_BATCHES, data=2, data_index=rank))
    return job.begin(0)


@pytest.mark.parametrize("watched", ["0", "1"])
@pytest.mark.parametrize("backend", ["falcon", "cpu:falcon"])
def test_the_plan_of_a_healthy_job_is_the_equal_split(backend, watched):
    plans = run_ranks(2, planned, backend=backend, environment={"NCCL_FALCON": watched})
    assert [(plan.first, plan.micro_batches, plan.weight) for plan in plans] == [(0, 4, 0.5), (4, 4, 0.5)]


def ends_of_iterations(rank):
    job = falcon.Job(falcon.Layout(MICRO_BATCHES - 1, data=2, data_index=rank))
    ends, plans, sums = [], [], []

    def told(end):
        plans.append(job.plan)
        total = torch.ones(1)
        dist.all_reduce(total)
        sums.append(total.item())
        ends.append(end)

    job.at_end(told, restarts=True)
    for iteration in (3, 4, 5):
        job.begin(iteration)
    job.at_end(None)
    job.begin(6)
    assert all(end.plan == plan == job.plan and 0 <= end.seconds < 60 for end, plan in zip(ends, plans))
    assert sums == [2, 2]
    return [(end.iteration, end.next, end.health, end.wanted, end.changed, end.plan.micro_batches) for end in ends]


@pytest.mark.parametrize("watched", ["0", "1"])
def test_a_function_is_told_where_iterations_end(watched):
    for rank, ends in enumerate(run_ranks(2, ends_of_iterations, environment={"NCCL_FALCON": watched})):
        assert ends == [(3, 4, falcon.Health.UNKNOWN, 0, 0, 4 - rank), (4, 5, falcon.Health.UNKNOWN, 0, 0, 4 - rank)]


def raises_at_the_end(rank):
    job = falcon.Job(falcon.Layout(MICRO_BATCHES, data=2, data_index=rank))
    first, second = [], []

    def stops(end):
        first.append(end)
        job.at_end(second.append)
        raise SystemExit(143)

    job.at_end(stops)
    job.begin(0)
    with pytest.raises(SystemExit, match="143"):
        job.begin(1)
    assert job.plan.micro_batches == 4
    job.begin(2)
    return [end.iteration for end in first], [end.iteration for end in second]


def test_what_is_raised_where_an_iteration_ends_begin_raises():
    assert run_ranks(2, raises_at_the_end) == [([0], [1])] * 2


def wrong_layout(rank):
    with pytest.raises(dist.DistBackendError, match="dataParallelSize is 3"):
        falcon.Job(falcon.Layout(MICRO_BATCHES, data=3, data_index=rank))


def test_a_layout_of_another_size_is_refused():
    run_ranks(2, wrong_layout)


@pytest.mark.parametrize("value", [-1, 1 << 31, 4.0])
def test_a_layout_of_no_number_is_refused_by_its_field(value):
    with pytest.raises(ValueError, match=f"most of a Layout is {value}; "):
        falcon.Layout(MICRO_BATCHES, most=value)


def wrong_iteration(rank):
    job = falcon.Job(falcon.Layout(MICRO_BATCHES))
    for ask in (job.begin, job.wanted, job.checkpoint):
        with pytest.raises(ValueError, match="the iteration is -1; "):
            ask(-1)


def test_an_iteration_below_zero_is_refused():
    run_ranks(1, wrong_iteration)


def kept(rank, folder):
    job = falcon.Job(falcon.Layout(MICRO_BATCHES, data=2, data_index=rank))
    net = model()
    optimizer = torch.optim.AdamW(net.parameters())
    net(torch.ones(1, WIDTH)).sum().backward()
    optimizer.step()
    names = job.register(net, optimizer)
    nothing = job.restore(folder)
    before = [tensor.clone() for tensor in job._state.values()]
    job.checkpoint(3, folder)
    job.checkpoint_synchronize()
    dist.barrier()
    with torch.no_grad():
        for tensor in job._state.values():
            tensor.zero_()
    number = job.restore(folder)
    same = all(torch.equal(one, other) for one, other in zip(before, job._state.values()))
    return len(names), nothing, number, same


@pytest.mark.parametrize("watched", ["0", "1"])
def test_model_and_optimizer_come_back_from_a_checkpoint(tmp_path, watched):
    # Four parameters, each with a step and two moments.
    given = run_ranks(2, kept, tmp_path, environment={"NCCL_FALCON": watched})
    assert given == [(16, None, 3, True)] * 2


def loaded(rank, folder):
    """What load_state_dict puts in the optimizer's place is registered by registering again."""
    job = falcon.Job(falcon.Layout(MICRO_BATCHES, data=2, data_index=rank))
    net = model()
    optimizer = torch.optim.AdamW(net.parameters())
    net(torch.ones(1, WIDTH)).sum().backward()
    optimizer.step()
    names = job.register(net, optimizer)
    optimizer.load_state_dict(optimizer.state_dict())
    moment = optimizer.state[net[0].weight]["exp_avg"]
    moment.fill_(5)
    # Another Job of the group has the same state.
    again = falcon.Job(falcon.Layout(MICRO_BATCHES, data=2, data_index=rank))
    assert again.register(net, optimizer) == names
    again.unregister("optimizer/3/step")
    with pytest.raises(dist.DistBackendError, match="optimizer/3/step"):
        job.unregister("optimizer/3/step")
    job.checkpoint(1, folder)
    job.checkpoint_synchronize()
    dist.barrier()
    moment.zero_()
    assert job.restore(folder) == 1
    return moment.unique().item(), job.wanted(1)


def test_state_is_registered_again(tmp_path):
    assert run_ranks(2, loaded, tmp_path) == [(5, 0)] * 2


def asked(rank):
    job = falcon.Job(falcon.Layout(MICRO_BATCHES, data=2, data_index=rank))
    with pytest.raises(dist.DistBackendError, match="NCCL_FALCON_CHECKPOINT_DIR"):
        job.checkpoint(1)
    return job.restart()


def test_a_restart_is_asked_for(tmp_path):
    request = tmp_path / "restart.json"
    assert run_ranks(2, asked, environment={"NCCL_FALCON_RESTART_FILE": str(request)}) == [143, 143]
    assert json.loads(request.read_text())["leave_out"] == []


def gaps(rank):
    job = falcon.Job(falcon.Layout(MICRO_BATCHES, data=2, data_index=rank))
    with pytest.raises(ValueError, match='"turned".*contiguous'):
        job.register_tensor("turned", torch.ones(3, 4).t())
    mesh = dist.init_device_mesh("cpu", (2,))
    shards = dist.tensor.distribute_tensor(torch.ones(4), mesh, [dist.tensor.Shard(0)])
    with pytest.raises(ValueError, match='"shards" is a DTensor.*to_local'):
        job.register_tensor("shards", shards)
    job.register_tensor("shards", shards.to_local(), replicated=False)


def test_state_without_memory_in_one_piece_is_refused_by_its_name():
    run_ranks(2, gaps)


def in_debug_mode(rank, folder):
    dist.set_debug_level(dist.DebugLevel.DETAIL)
    dist.init_process_group("falcon", store=dist.FileStore(f"{folder}/store", 2), rank=rank, world_size=2)
    return planned(rank).first


def test_a_job_in_pytorchs_debug_mode(tmp_path):
    assert run_ranks(2, in_debug_mode, tmp_path, backend=None) == [0, 4]


def refused(rank):
    with pytest.raises(ValueError, match="by gloo; .*init_process_group"):
        falcon.Job(falcon.Layout(MICRO_BATCHES))


def test_a_group_of_another_backend_is_refused():
    run_ranks(1, refused, backend="gloo")
    with pytest.raises(ValueError, match="call torch.distributed.init_process_group first"):
        falcon.Job(falcon.Layout(MICRO_BATCHES))


def ended(rank):
    job = falcon.Job(falcon.Layout(MICRO_BATCHES, data=2, data_index=rank))
    job.register(model())
    dist.destroy_process_group()
    with pytest.raises(dist.DistBackendError, match="the process group was destroyed"):
        job.begin(0)


def test_a_job_ends_with_its_group():
    run_ranks(2, ended)


class StandIn:
    """The public interface of Megatron Core's NumMicroBatchesCalculator."""

    def __init__(self, numbers):
        self._numbers = list(numbers)

    def get(self):
        return self._numbers[0]

    def get_current_global_batch_size(self):
        return 32

    def get_current_running_global_batch_size(self):
        return 32

    def get_micro_batch_size(self):
        return 4

    def update(self, consumed_samples, consistency_check, verbose=False):
        if len(self._numbers) > 1:
            self._numbers.pop(0)


def test_megatrons_calculator_gives_the_plans_number():
    plan = None
    calculator = falcon.MicroBatchCalculator(StandIn([4]), lambda: plan, 2)
    assert calculator.get() == 4
    plan = falcon.Plan(1, 3, 0, 3 / 8)
    calculator.update(0, True)
    assert calculator.get() == 3
    assert calculator.get_current_global_batch_size() == 32
    assert calculator.get_current_running_global_batch_size() == 32
    assert calculator.get_micro_batch_size() == 4


def test_a_growing_batch_is_refused():
    calculator = falcon.MicroBatchCalculator(StandIn([4, 8]), lambda: None, 2)
    with pytest.raises(ValueError, match="from 8 to 16"):
        calculator.update(0, True)
