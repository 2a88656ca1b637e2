"""Messages between two ranks: each direction has a way of its own, and tags are honoured."""

import threading

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

    def send(self, tag: int, address: int, size: int, peer: int):
        return self._channel(self._rank, peer).post(tag, address, size)

    def receive(self, tag: int, address: int, size: int, peer: int):
        return self._channel(peer, self._rank).post(tag, address, size)

    def _channel(self, source: int, destination: int):
        channel = self._channels.get((source, destination))
        if channel is not None:
            return channel
        with self._lock:
            if (source, destination) not in self._channels:
                self._channels[source, destination] = self._open(source, destination)
            return self._channels[source, destination]

    def _open(self, source: int, destination: int):
        name = f"messages from rank {source} to rank {destination}"
        identity = self._identity(f"messages/{source}/{destination}")
        return _native.Channel(identity, source == self._rank, name)

    def _identity(self, key: str) -> bytes:
        if self._store.check([key]):
            return bytes.fromhex(self._store.get(key).decode())
        return bytes.fromhex(self._store.compare_set(key, "", _native.unique_id().hex()).decode())

    def close(self, text: str) -> None:
        with self._lock:
            channels, self._channels = self._channels, {}
        for channel in channels.values():
            channel.close(text)
