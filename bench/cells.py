"""What is measured: a cell is one collective at one size, among so many ranks, over one transport."""

import dataclasses

COLLECTIVES = ["all_reduce", "all_gather", "reduce_scatter", "broadcast", "reduce", "sendrecv", "alltoall", "gather",
               "scatter"]
TRANSPORTS = ["shm", "tcp"]
RANKS = [2, 4, 8]
QUICK_SIZES = [8, 1 << 10, 64 << 10, 1 << 20, 16 << 20]
FULL_SIZES = [8, 64, 512, 4 << 10, 16 << 10, 64 << 10, 256 << 10, 1 << 20, 4 << 20, 16 << 20, 64 << 20, 128 << 20]


@dataclasses.dataclass(frozen=True)
class Setting:
    """What needs processes of its own."""
    transport: str
    ranks: int
    cgroups: bool

    def __str__(self):
        return f"{self.transport} {self.ranks} ranks{' cgroups' if self.cgroups else ''}"


@dataclasses.dataclass(frozen=True)
class Cell:
    collective: str
    bytes: int

    def __str__(self):
        return f"{self.collective} {size_name(self.bytes)}"


def size_name(size):
    for unit, name in ((1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")):
        if size >= unit and size % unit == 0:
            return f"{size // unit} {name}"
    return f"{size} B"


def parse_size(text):
    """8, 64K, 1M, 1G, with or without "iB"."""
    word = text.strip().upper().removesuffix("IB").removesuffix("B").strip()
    factor = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}.get(word[-1:], 1)
    number = word[:-1] if factor > 1 else word
    if not number.isdigit() or int(number) == 0:
        raise ValueError(f"{text}: not a size, such as 8, 64K or 16M")
    return int(number) * factor
