"""A library's processes, started once and told over a Unix socket what to measure. An idle rank sleeps in read(), so that
all libraries can stay up side by side and be measured in turn."""

import json
import os
import select
import signal
import socket
import struct
import subprocess
import tempfile
import time


class JobFailed(Exception):
    pass


class Job:
    """Use as a context manager: whatever happens, its processes end."""

    START_SECONDS = 60
    TASK_SECONDS = 120

    def __init__(self, library, setting, paths, logs, cgroups=None):
        self.library, self.setting = library, setting
        self.paths, self.cgroups = paths, cgroups
        self.log = os.path.join(logs, f"{library.name}.log".replace(" ", "-"))
        self.process = None
        self.ranks = []  # connections, rank 0 first
        self.pids = []

    def __enter__(self):
        self.folder = tempfile.TemporaryDirectory(prefix="falcon-bench-")
        try:
            self._start()
        except BaseException:
            self._end()
            raise
        return self

    def __exit__(self, *exception):
        self._end()

    def measure(self, cell, seconds, batches, verify):
        """The measurement as the driver's JSON; raises JobFailed if the job died, hung, or computed wrong results."""
        line = f"{cell.collective} {cell.bytes} {seconds} {batches} {int(verify)}\n".encode()
        try:
            for rank in self.ranks:
                rank.sendall(line)
        except OSError as error:
            raise JobFailed(f"{self.library.name} ended before {cell}: {error}; see {self.log}") from error
        deadline = time.monotonic() + self.TASK_SECONDS
        answers = [self._line(rank, deadline, str(cell)) for rank in self.ranks]
        result = json.loads(answers[0])
        if result["wrong"]:
            raise JobFailed(f"{self.library.name} gave {result['wrong']} wrong elements for {cell}")
        return result

    def _start(self):
        path = os.path.join(self.folder.name, "control")
        listener = socket.socket(socket.AF_UNIX)
        listener.bind(path)
        listener.listen(256)
        environment = {**os.environ, "BENCH_GLOO_STORE": self.folder.name, **self.library.environment(self.setting)}
        command = [*self.library.command(self.setting, self.paths), "--control", path]
        with open(self.log, "ab") as log:
            log.write(f"# {self.setting}: {' '.join(command)}\n".encode())
            log.flush()
            self.process = subprocess.Popen(command, env=environment, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                                            start_new_session=True)
        with listener:
            self._accept(listener)
        if self.cgroups and "--cgroups" not in command:
            self.cgroups.place(self.pids)

    def _accept(self, listener):
        deadline = time.monotonic() + self.START_SECONDS
        found, expected = {}, None
        while expected is None or len(found) < expected:
            ready, _, _ = select.select([listener], [], [], 0.2)
            if not ready:
                if self.process.poll() is not None or time.monotonic() > deadline:
                    raise JobFailed(f"{self.library.name} did not start ({self.setting}); see {self.log}")
                continue
            connection, _ = listener.accept()
            self.ranks.append(connection)
            pid = struct.unpack("3i", connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))[0]
            self.pids.append(pid)
            rank, expected = map(int, self._line(connection, deadline, "its start").split())
            found[rank] = (connection, pid)
        self.ranks = [found[rank][0] for rank in sorted(found)]
        self.pids = [found[rank][1] for rank in sorted(found)]

    def _line(self, connection, deadline, what):
        text = b""
        while not text.endswith(b"\n"):
            ready, _, _ = select.select([connection], [], [], max(0, deadline - time.monotonic()))
            if not ready:
                raise JobFailed(f"{self.library.name} hangs at {what}; see {self.log}")
            try:
                got = connection.recv(65536)
            except OSError:
                got = b""
            if not got:
                raise JobFailed(f"{self.library.name} ended at {what}; see {self.log}")
            text += got
        return text.decode()

    def _end(self):
        for rank in self.ranks:
            rank.close()  # which tells a rank to finish
        self.ranks = []
        if self.process:
            try:
                self.process.wait(10)
            except subprocess.TimeoutExpired:
                self._kill()
            self.process = None
        self.folder.cleanup()

    def _kill(self):
        """The launcher first: it ends its ranks. Then what is left of those that said who they are."""
        for stop, patience in ((signal.SIGTERM, 5), (signal.SIGKILL, 5)):
            try:
                os.killpg(self.process.pid, stop)
                self.process.wait(patience)
                break
            except ProcessLookupError:
                break
            except subprocess.TimeoutExpired:
                continue
        for pid in self.pids:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        self.process.wait()
