"""Makes the backend known to torch.distributed."""

NAME = "falcon"
OLDEST = (2, 15)


def _is_old(torch) -> bool:
    major, minor = torch.__version__.split(".")[:2]
    return (int(major), int(minor)) < OLDEST


def _refuse_version(torch):
    def create(*_):
        raise RuntimeError(
            f'the backend "{NAME}" needs PyTorch {OLDEST[0]}.{OLDEST[1]} or later, whose backends may be Python classes; '
            f"this is {torch.__version__}"
        )

    return create


def register(torch) -> None:
    if not torch.distributed.is_available():
        return
    backend = torch.distributed.Backend
    if NAME.upper() in backend._plugins:
        return
    if _is_old(torch):
        backend.register_backend(NAME, _refuse_version(torch), devices=["cpu"])
        return
    from ._backend import create, make_non_members_known
    from ._work import make_outcomes_known

    make_outcomes_known()
    make_non_members_known()
    backend.register_backend(NAME, create, extended_api=True, devices=["cpu"])


def register_with_pytorch() -> None:
    """The package's entry point "torch.distributed.backends": a process group's backend is found without an import."""
    import torch

    register(torch)
