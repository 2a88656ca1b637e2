"""Messages between two ranks: each direction has a way of its own, and tags are honoured."""

import threading

import torch.distributed as dist

from . import _native


class Messages:
    """The ways between this rank and the others of a process group. The two ends meet over the store, whichever comes
    first; nothing here waits for the other rank."""

    def __init__(self, store, rank: int, size: int):
        self._store = store
        self._rank = rank
        self._size = size
        self._lock = threading.Lock()
        self._channels = {}
        self._closed = None

    def send(self, tag: int, address: int, size: int, peer: int):
        return self._channel(self._rank, peer).post(tag, address, size)

    def receive(self, tag: int, address: int, size: int, peer: int):
        return self._channel(peer, self._rank).post(tag, address, size)

    def _channel(self, source: int, destination: int):
        channel = self._channels.get((source, destination))
        if channel is not None:
            return channel
        with self._lock:
            if self._closed is not None:
                raise dist.DistBackendError(f"falcon: {self._closed}")
            if (source, destination) not in self._channels:
                self._channels[source, destination] = self._open(source, destination)
            return self._channels[source, destination]

    def _open(self, source: int, destination: int):
        identity = self._identity(f"messages/{source}/{destination}")
        return _native.Channel(identity, source == self._rank, _name(source, destination))

    def _identity(self, key: str) -> bytes:
        if self._store.check([key]):
            return bytes.fromhex(self._store.get(key).decode())
        return bytes.fromhex(self._store.compare_set(key, "", _native.unique_id().hex()).decode())

    def close_one(self, source: int, destination: int, text: str) -> None:
        """What is under way and what comes later on this way fails with that text; the other ways stay."""
        self._channel(source, destination).close(f"{_name(source, destination)}: {text}")

    def close(self, text: str) -> None:
        """All ways, also those that nobody has gone yet."""
        with self._lock:
            if self._closed is None:
                self._closed = text
            channels, self._channels = self._channels, {}
        for channel in channels.values():
            channel.close(text)


def _name(source: int, destination: int) -> str:
    return f"messages from rank {source} to rank {destination}"
