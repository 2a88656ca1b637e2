"""What a PyTorch program may tell Falcon, and ask of it: ``import nccl_falcon.torch`` (docs/pytorch.md).

The layout says which ranks are replicas of each other; the plan then says how many micro-batches this one computes in an
iteration. Replicas may have different numbers, so that gradients are weighted: see `GradientShare`.
"""

import dataclasses
import enum
import os

import torch
import torch.distributed as dist

from . import _native
from ._backend import FalconBackend
from ._library import iteration_work, range, ranged
from ._megatron import MicroBatchCalculator
from ._roles import RoleExchange, memory_of

__all__ = [
    "Changed",
    "GradientShare",
    "Health",
    "IterationEnd",
    "Job",
    "Layout",
    "MicroBatchCalculator",
    "Plan",
    "iteration_work",
    "range",
    "ranged",
    "share_gradients",
    "sum_gradients",
]

WANTED_CHECKPOINT, WANTED_RESTART = 1, 2


@dataclasses.dataclass(frozen=True)
class Layout:
    """How this rank takes part in hybrid parallelism: ``ncclFalconLayout_t``.

    micro_batches: of one iteration, over all replicas. multiple: every replica gets a multiple of it. least, most: what
    this rank must have and has memory for (most 0: no limit); DDP needs a backward pass of every replica, so at least 1.
    """

    micro_batches: int
    data: int = 1
    pipeline: int = 1
    tensor: int = 1
    data_index: int = 0
    pipeline_index: int = 0
    tensor_index: int = 0
    multiple: int = 0
    least: int = 1
    most: int = 0
    even_only: bool = False

    def __post_init__(self):
        for name, value in dataclasses.asdict(self).items():
            if not isinstance(value, int) or not 0 <= value < 1 << 31:
                raise ValueError(f"{name} of a Layout is {value!r}; it is a number from 0 to {(1 << 31) - 1}")


@dataclasses.dataclass(frozen=True)
class Plan:
    """What this rank's replica computes in one iteration: the global micro-batches first .. first + micro_batches - 1.
    weight: what its mean gradient counts, micro_batches / all."""

    version: int
    micro_batches: int
    first: int
    weight: float


class Health(enum.IntEnum):
    """What Falcon thinks of the job. UNKNOWN: it is off, or has no healthy baseline yet; SUSPECTED: iterations have become
    slower, and it looks for the reason; SLOW: a rank, a link or a host was named, and is not healthy again."""

    UNKNOWN, HEALTHY, SUSPECTED, SLOW = 0, 1, 2, 3


class Changed(enum.IntFlag):
    """What is another in an iteration than in the one before. PLAN: the plan's version, alike on all ranks;
    MICRO_BATCHES: how many or which this rank computes, or its weight; ROLE: what this rank does in the job."""

    PLAN, MICRO_BATCHES, ROLE = 1, 2, 4


@dataclasses.dataclass(frozen=True)
class IterationEnd:
    """What `Job.at_end` is told. seconds: from the former's plan to when the next one was asked for, on this rank.
    wanted: as `Job.wanted` tells it for `iteration`. plan: that of `next`, which begins."""

    iteration: int
    next: int
    seconds: float
    health: Health
    wanted: int
    changed: Changed
    plan: Plan


class GradientShare:
    """What this replica's gradient counts in the sum over the replicas. `weight` is renewed in every iteration, before
    its backward pass; the gradient is the mean over this replica's micro-batches."""

    def __init__(self, weight: float, group=None):
        self.weight = weight
        self.group = group


def share_gradients(share: GradientShare, bucket):
    """DDP's hook: ``net.register_comm_hook(share, share_gradients)``. The sum of weighted means is the mean over all
    micro-batches, however they are split; DDP's own average would count every replica alike."""
    buffer = bucket.buffer().mul_(share.weight)
    work = dist.all_reduce(buffer, group=share.group, async_op=True)
    return work.get_future().then(lambda future: future.value()[0])


def sum_gradients(share: GradientShare, parameters) -> None:
    """The same for what is not under DDP, such as a pipeline's stage: after the backward pass of all micro-batches."""
    gradients = [parameter.grad for parameter in parameters if parameter.grad is not None]
    for gradient in gradients:
        gradient.mul_(share.weight)
    for work in [dist.all_reduce(gradient, group=share.group, async_op=True) for gradient in gradients]:
        work.wait()


class Job:
    """The job as Falcon knows it, by the process group of all of its ranks (None: the default one).

    Every rank makes one, once, after init_process_group. Errors of the library are DistBackendErrors.
    """

    def __init__(self, layout: Layout, group=None):
        self._backend = backend = _backend_of(group)
        self._communicator = backend._communicator
        self._state = backend._state
        self._exchange = None
        self.plan = None
        _told(
            self._communicator.register_layout,
            layout.data,
            layout.pipeline,
            layout.tensor,
            layout.data_index,
            layout.pipeline_index,
            layout.tensor_index,
            layout.micro_batches,
            layout.multiple,
            layout.least,
            layout.most,
            layout.even_only,
        )

    def begin(self, iteration: int) -> Plan:
        """At an iteration's start: the plan in force. Iterations count up, alike on all ranks. May wait while the job is
        held or a plan is being agreed, or ranks exchange their roles (`register_roles`)."""
        self._plan_is(_told(self._communicator.iteration_begin, _checked(iteration)))
        return self.plan

    def at_end(self, function, restarts: bool = False) -> None:
        """From now on function(end), an `IterationEnd`, is called in `begin` for the iteration that ended; None: no more.
        One for a process group: another takes its place.

        It is the last thing that `begin` does, so that it may do whatever a program may between two iterations, what all
        ranks do together included (a checkpoint, say), but not `reshape`. What it raises `begin` raises, and the plan is
        in `plan`. restarts: it does what is wanted, which is asked for as by `wanted`.
        """

        def heard(iteration, following, seconds, health, wanted, changed, plan):
            self._plan_is(plan)
            function(IterationEnd(iteration, following, seconds, Health(health), wanted, Changed(changed), self.plan))

        hook = self._backend._iteration_hook = self._backend._iteration_hook or _native.IterationHook()
        _told(hook.register_for, self._communicator, None if function is None else heard, restarts)

    def _plan_is(self, told):
        self.plan = Plan(*told)
        if self._exchange is not None:
            self._exchange.look()

    def register_tensor(self, name: str, tensor, replicated: bool = True) -> None:
        """The tensor's memory is part of the job's state, in the place of what had this name before. It stays until
        `unregister` or the process group's end, so do not resize it. replicated: all replicas have the same. Raises
        ValueError for what has no memory of its own in one piece here."""
        tensor = memory_of(name, tensor)
        if name in self._state:
            self.unregister(name)
        _told(
            self._communicator.register_state,
            name,
            tensor.data_ptr(),
            tensor.numel() * tensor.element_size(),
            replicated,
        )
        self._state[name] = tensor

    def register(self, model, optimizer=None, replicated: bool = True) -> list:
        """The model's parameters and buffers, and the tensors of the optimizer's state; gives their names. What shares
        memory goes once, what is empty not at all.

        An optimizer makes its state in its first step: register after one, and again after load_state_dict, which puts
        other tensors in their place. What is no tensor (learning rates, a data loader's place) is not in it.
        """
        tensors = [(f"model/{name}", tensor) for name, tensor in model.named_parameters()]
        tensors += [(f"model/{name}", tensor) for name, tensor in model.named_buffers()]
        parameters = [one for group in optimizer.param_groups for one in group["params"]] if optimizer else []
        for place, parameter in enumerate(parameters):
            state = sorted(optimizer.state.get(parameter, {}).items())
            tensors += [(f"optimizer/{place}/{kind}", one) for kind, one in state if isinstance(one, torch.Tensor)]
        names, seen = [], set()
        for name, tensor in tensors:
            if tensor.numel() > 0 and tensor.data_ptr() not in seen:
                self.register_tensor(name, tensor, replicated)
                seen.add(tensor.data_ptr())
                names.append(name)
        return names

    def unregister(self, name: str) -> None:
        _told(self._communicator.unregister_state, name)
        self._state.pop(name, None)

    def checkpoint(self, iteration: int, folder: str | os.PathLike | None = None) -> None:
        """Keeps the state under this number in the folder (None: NCCL_FALCON_CHECKPOINT_DIR); written in the
        background. Of all ranks together."""
        _told(self._communicator.checkpoint, _checked(iteration), _text_of(folder))

    def checkpoint_synchronize(self) -> None:
        """Waits until this rank's part of the last checkpoint is on the storage."""
        _told(self._communicator.checkpoint_synchronize)

    def restore(self, folder: str | os.PathLike | None = None) -> int | None:
        """Loads the newest checkpoint that all ranks have in what is registered; gives its number, or None where there
        is none. Of all ranks together."""
        return _told(self._communicator.restore, _text_of(folder))

    def wanted(self, iteration: int) -> int:
        """At an iteration's end: the sum of WANTED_CHECKPOINT and WANTED_RESTART, or 0; alike on all ranks."""
        return _told(self._communicator.wanted, _checked(iteration))

    @property
    def roles(self) -> list:
        """The role of every rank, by rank: what it does in the job, numbered by the rank that did it in the beginning."""
        return _told(self._communicator.roles, self._backend.size())

    @property
    def role(self) -> int:
        return self.roles[self._backend.rank()]

    def rank_of(self, role: int) -> int:
        """Who has the role now: where messages for it go."""
        return self.roles.index(role)

    def register_roles(self, prepare, commit=None, abandon=None, groups=()) -> None:
        """Ranks may exchange their roles from now on: in `begin`, where Falcon finds that it pays
        (NCCL_FALCON_MITIGATE=auto), or by `reshape`. The registered state goes to who takes the role.

        prepare(role): room for the state of a role that this process is to take, a dict of its names and tensors. What
        it raises is printed, and the job goes on as before. commit(role): the room is filled, and this process has the
        role; abandon(role): it has not come to that. Only ranks whose role changes are asked.

        groups: process groups whose members go by their roles, such as a stage's replicas, at the same places on all
        ranks; None where there is none. They stay, and what is behind them is made anew: rank r of a group is then who
        has the role that its rank r had. Collectives of all members do that; messages do not, and go over the group of
        all ranks to `rank_of(role)`.
        """
        backends = [None if group is None else _backend_of(group) for group in groups]
        self._exchange = _told(RoleExchange, self._backend, backends, prepare, commit, abandon)

    def reshape(self, roles) -> None:
        """Rank r takes roles[r]. Of all ranks together, between two iterations: nothing is under way. Where it fails
        nothing is changed on any rank."""
        _told(self._communicator.reshape, list(roles))
        self._exchange.look()

    def restart(self) -> int:
        """Asks whoever started the job to start it again; gives what to exit with. Of all ranks together."""
        return _told(self._communicator.restart)


def _told(function, *arguments):
    try:
        return function(*arguments)
    except _native.CallError as error:
        raise dist.DistBackendError(f"falcon: {error}") from None


def _checked(iteration):
    if not isinstance(iteration, int) or not 0 <= iteration < 1 << 63:
        raise ValueError(f"the iteration is {iteration!r}; iterations are whole numbers that count up from 0")
    return iteration


def _text_of(folder):
    return None if folder is None else os.fspath(folder)


def _backend_of(group):
    group = group or dist.group.WORLD
    if group is None:
        raise ValueError("there is no process group: call torch.distributed.init_process_group first")
    backend = group._get_backend(torch.device("cpu"))
    # What PyTorch's debug mode puts around it.
    backend = getattr(backend, "wrapped_pg", backend)
    if not isinstance(backend, FalconBackend):
        raise ValueError(
            f"the process group moves CPU tensors by {backend.name()}; "
            'nccl_falcon.torch wants falcon: init_process_group("falcon")'
        )
    return backend
