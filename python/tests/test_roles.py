"""Ranks that exchange their roles (nccl_falcon.torch.Job.register_roles)."""

import pytest
import torch
import torch.distributed as dist
import torch.nn as nn
from ranks import run_ranks

import nccl_falcon.torch as falcon

STAGES, REPLICAS, STEPS, MICRO_BATCHES, WIDTH, HIDDEN = 2, 2, 8, 4, 16, 24


class Stage:
    """What a role has: a part of the net and its optimizer's state, which differ in size between the stages."""

    def __init__(self, stage):
        torch.manual_seed(stage)
        self.number = stage
        self.net = nn.Sequential(nn.Linear(WIDTH, HIDDEN), nn.Tanh()) if stage == 0 else nn.Linear(HIDDEN, WIDTH)
        self.momentum = [torch.zeros_like(one) for one in self.net.parameters()]

    def tensors(self):
        named = {f"weight/{place}": one for place, one in enumerate(self.net.parameters())}
        return named | {f"momentum/{place}": one for place, one in enumerate(self.momentum)}

    @torch.no_grad()
    def step(self):
        for momentum, one in zip(self.momentum, self.net.parameters()):
            momentum.mul_(0.9).add_(one.grad)
            one.sub_(momentum, alpha=0.05)
            one.grad = None


def micro_batch(step, number):
    generator = torch.Generator().manual_seed(100 * step + number)
    return torch.randn(3, WIDTH, generator=generator)


class Trainer:
    """A replica is roles 2 r and 2 r + 1; stages pass on what they have over the group of all ranks."""

    def __init__(self, rank):
        self.job = falcon.Job(
            falcon.Layout(
                MICRO_BATCHES, data=REPLICAS, pipeline=STAGES, data_index=rank // STAGES, pipeline_index=rank % STAGES
            )
        )
        groups = [dist.new_group([stage, STAGES + stage]) for stage in range(STAGES)]
        self.replicas = groups[rank % STAGES]
        self.stage, self.next, self.told = Stage(rank % STAGES), None, []
        for name, one in self.stage.tensors().items():
            self.job.register_tensor(name, one)
        self.job.register_roles(self.prepare, self.commit, self.abandon, [self.replicas])

    def prepare(self, role):
        self.next = Stage(role % STAGES)
        return self.next.tensors()

    def commit(self, role):
        self.stage, self.next = self.next, None
        self.told.append(role)

    def abandon(self, role):
        self.next = None
        self.told.append(-role)

    def train(self, step):
        plan = self.job.begin(step)
        role, loss = self.job.role, torch.zeros(1)
        assert role % STAGES == self.stage.number
        for number in range(plan.first, plan.first + plan.micro_batches):
            peer = self.job.rank_of(role ^ 1)
            if self.stage.number == 0:
                output = self.stage.net(micro_batch(step, number))
                dist.send(output.detach(), peer)
                gradient = torch.empty_like(output)
                dist.recv(gradient, peer)
                (output * (gradient / plan.micro_batches)).sum().backward()
            else:
                between = torch.empty(3, HIDDEN).requires_grad_()
                dist.recv(between.data, peer)
                error = nn.functional.mse_loss(self.stage.net(between), micro_batch(step, number).roll(1, dims=1))
                (error / plan.micro_batches).backward()
                dist.send(between.grad * plan.micro_batches, peer)
                loss += error.detach() / MICRO_BATCHES
        falcon.sum_gradients(falcon.GradientShare(plan.weight, self.replicas), self.stage.net.parameters())
        self.stage.step()
        dist.all_reduce(loss)
        return loss.item()


def trains(rank, exchanges):
    trainer, losses = Trainer(rank), []
    for step in range(STEPS):
        if step in exchanges:
            trainer.job.reshape(exchanges[step])
            assert trainer.job.roles == exchanges[step]
        losses.append(trainer.train(step))
    # The group of a stage: places are roles' places, whoever has them now.
    role, members = trainer.job.role, torch.zeros(REPLICAS, dtype=torch.int64)
    dist.all_gather_into_tensor(members, torch.tensor([role]), group=trainer.replicas)
    assert members.tolist() == [role % STAGES, STAGES + role % STAGES]
    bits = torch.tensor([1 << role])
    dist.all_reduce(bits, dist.ReduceOp.BOR, group=trainer.replicas)
    assert bits.item() == (1 << members[0]) | (1 << members[1])
    first = torch.tensor([float(role)])
    dist.broadcast(first, rank % STAGES, group=trainer.replicas)  # PyTorch's rank 0 of its group
    assert first.item() == role % STAGES
    return losses, trainer.told


def test_losses_are_those_of_an_undisturbed_run():
    undisturbed = run_ranks(4, trains, {})
    exchanged = run_ranks(4, trains, {2: [1, 0, 2, 3], 4: [1, 0, 3, 2], 6: [3, 1, 0, 2]})
    assert [losses for losses, _ in exchanged] == [losses for losses, _ in undisturbed]
    assert undisturbed[0][0][-1] < undisturbed[0][0][0]
    assert [told for _, told in exchanged] == [[1, 3], [0, 1], [3, 0], [2]]


def fails(rank):
    trainer = Trainer(rank)
    before = trainer.train(0)
    if rank == 1:
        def refuses(role):
            raise ValueError(f"no room for role {role}")

        trainer.job.register_roles(refuses, trainer.commit, trainer.abandon, [trainer.replicas])
    with pytest.raises(dist.DistBackendError, match="nothing is changed.*prepare.* for role 0"):
        trainer.job.reshape([1, 0, 2, 3])
    assert trainer.job.roles == [0, 1, 2, 3]
    with pytest.raises(dist.DistBackendError, match="3 roles for 4 ranks"):
        trainer.job.reshape([0, 1, 2])
    after = trainer.train(1)
    return before, after, trainer.told


def test_nothing_is_changed_where_a_rank_cannot_prepare(capfd):
    told = run_ranks(4, fails)
    assert len({losses[:2] for losses in told}) == 1
    assert told[0][2] == [-1] or told[0][2] == [], told  # asked before it failed elsewhere, or not at all
    assert "no room for role 0" in capfd.readouterr().err


def goes_wrong_ways(rank):
    trainer = Trainer(rank)
    trainer.job.reshape([1, 0, 2, 3])
    with pytest.raises(RuntimeError, match="rank_of"):
        dist.send(torch.ones(1), group_dst=1 - dist.get_rank(trainer.replicas), group=trainer.replicas)
    with pytest.raises(RuntimeError, match="monitored_barrier goes over a group of ranks"):
        dist.monitored_barrier(trainer.replicas)
    with pytest.raises(ValueError, match='the state "a" is a tensor with gaps'):
        trainer.job.register_tensor("a", torch.ones(4, 4).t())


def test_what_pytorch_knows_by_ranks_is_refused():
    run_ranks(4, goes_wrong_ways)


def has_none(rank):
    job = falcon.Job(falcon.Layout(2, data=2, data_index=rank))
    assert job.roles == [0, 1] and job.role == rank and job.rank_of(1) == 1
    with pytest.raises(dist.DistBackendError, match="ncclFalconRegisterReshape"):
        job.reshape([1, 0])


def test_without_hooks_there_is_no_exchange():
    run_ranks(2, has_none)
