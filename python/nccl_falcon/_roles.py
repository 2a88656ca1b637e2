"""Ranks that exchange their roles: what `nccl_falcon.torch.Job.register_roles` leaves behind (docs/reshape.md)."""

import traceback

import torch

from . import _native


def memory_of(name: str, tensor):
    """The tensor whose memory is this state's. Raises ValueError for what has no memory of its own in one piece here."""
    if type(tensor) not in (torch.Tensor, torch.nn.Parameter):
        raise ValueError(
            f'the state "{name}" is a {type(tensor).__name__}; register the plain tensor that it stands for '
            "(a DTensor's to_local(), with replicated=False)"
        )
    if tensor.layout is not torch.strided or tensor.device.type != "cpu" or not tensor.is_contiguous():
        gaps = "" if tensor.layout is not torch.strided or tensor.is_contiguous() else " with gaps"
        raise ValueError(
            f'the state "{name}" is a tensor{gaps} of layout {tensor.layout} on {tensor.device}; '
            "register a contiguous copy on the CPU, and renew it at the iteration's end"
        )
    return tensor.detach()


class RoleExchange:
    """The job's part in exchanges, which happen between two iterations, in Job.begin or Job.reshape.

    backend: that of all ranks. groups: backends whose members go by their roles; None where there is none.
    """

    def __init__(self, backend, groups, prepare, commit, abandon):
        self._backend = backend
        self._groups = [group for group in groups if group is not None]
        self._prepare_room, self._commit_role, self._abandon_role = prepare, commit, abandon
        self._room = None
        self._hooks = _native.RoleHooks(self._prepare, self._commit, self._abandon)
        self._hooks.register_for(
            backend._communicator, [None if group is None else group._communicator for group in groups]
        )
        # The library calls them as long as the communicator is there, which may be longer than this object.
        backend._role_hooks = self._hooks
        self._roles = self._asked()

    def _asked(self):
        return self._backend._communicator.roles(self._backend.size())

    def look(self) -> None:
        """Where roles have been exchanged since the last time the groups follow; on all ranks, changed or not."""
        roles = self._asked()
        if roles == self._roles:
            return
        self._roles = roles
        for group in self._groups:
            group.follow_roles()

    # What the library calls, in the thread that is in Job.begin or Job.reshape. It has no exceptions.

    def _prepare(self, role):
        try:
            self._room = {name: memory_of(name, tensor) for name, tensor in self._prepare_room(role).items()}
        except Exception:
            traceback.print_exc()
            return None
        return [(name, room.data_ptr(), room.numel() * room.element_size()) for name, room in self._room.items()]

    def _commit(self, role):
        self._backend._state.clear()
        self._backend._state.update(self._room)
        self._room = None
        if self._commit_role is not None:
            self._commit_role(role)

    def _abandon(self, role):
        self._room = None
        if self._abandon_role is not None:
            self._abandon_role(role)
