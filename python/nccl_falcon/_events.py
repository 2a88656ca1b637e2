"""What Falcon has told of a job, as objects: the lines of its events file (docs/events.schema.json)."""

import dataclasses
import json
import os
import re
import time


@dataclasses.dataclass(frozen=True)
class Culprit:
    """Who is to blame. kind is "rank", "link" or "host"; what does not belong to the kind is None. Ranks are the job's;
    both_ways: the link's other direction is slow, too."""

    kind: str
    rank: int | None = None
    link: tuple[int, int] | None = None
    both_ways: bool = False
    host: str | None = None


@dataclasses.dataclass(frozen=True)
class Event:
    """One event. What its kind has no figure for is None.

    time: seconds since 1970 by the controller's clock. iteration: the last one known to be over, -1 before the first.
    before_ms, after_ms: iteration times. confidence: 0 to 1. severity: 1 to 4. duration: seconds for which a trap held
    the job. text: one sentence for people. more: all that the line says, as JSON has it; readers pass over what they do
    not know.
    """

    kind: str
    time: float
    iteration: int
    text: str
    before_ms: float | None = None
    after_ms: float | None = None
    confidence: float | None = None
    severity: int | None = None
    duration: float | None = None
    culprit: Culprit | None = None
    more: dict = dataclasses.field(default_factory=dict, repr=False, compare=False)


def event_of(line: str) -> Event:
    """Of one line of an events file. Raises ValueError where it is none, or of a version that is not known here."""
    said = json.loads(line)
    if not isinstance(said, dict) or said.get("v") != 1:
        raise ValueError(f"this is no event of version 1: {line[:80]!r}")
    try:
        return Event(
            kind=said["kind"],
            time=said["wall_time_s"],
            iteration=said["iteration"],
            text=said["text"],
            before_ms=said.get("before_ms"),
            after_ms=said.get("after_ms"),
            confidence=said.get("confidence"),
            severity=said.get("severity"),
            duration=said.get("duration_s"),
            culprit=_culprit_of(said.get("culprit")),
            more=said,
        )
    except KeyError as lacking:
        raise ValueError(f"an event has {lacking}, and this line has none: {line[:80]!r}") from None


def events_path() -> str | None:
    """Where this process's job has its events; None before its first communicator and after its last one, where Falcon
    is off, and where it keeps no files (NCCL_DEBUG=INFO says why).

    They are written by the job's controller, the process of the lowest rank: on another host there are none.
    """
    folder = _job_folder()
    if folder is None:
        return None
    try:
        with open(f"{folder}/events.path", encoding="utf-8", errors="surrogateescape") as note:
            return note.read()
    except FileNotFoundError:
        return f"{folder}/events.jsonl"


def _job_folder():
    with open("/proc/self/maps", encoding="utf-8", errors="surrogateescape") as maps:
        found = re.search(r"(/\S*/nccl-falcon-[0-9]+/.+)/rank-[0-9]+\.calls$", maps.read(), re.MULTILINE)
    return found[1] if found else None


def events(path: str | os.PathLike | None = None, follow: bool = False, interval: float = 0.2):
    """Yields the `Event`s of a file in their order; None: those of this process's own job (`events_path`), whoever else
    writes to that file.

    follow: looks for further ones every `interval` seconds, and ends with the job ("job-ended"); without it what is
    there by now is all. A file that grew too long (NCCL_FALCON_EVENTS_SIZE) is followed into the next one; those before
    it are not read. Raises FileNotFoundError where the process has no job that Falcon watches.
    """
    given = None if path is None else os.fspath(path)
    folder = _job_folder()
    own = None if given or folder is None else os.path.basename(folder)
    if given is None and events_path() is None:
        raise FileNotFoundError(
            "no job of this process has events here: Falcon watches from the first communicator on, with NCCL_FALCON=1"
        )
    while True:
        # Until the job's controller has begun it has not noted where else they may go.
        path = given or events_path()
        if path is None:
            return
        try:
            file = open(path, encoding="utf-8")
        except FileNotFoundError:
            if not follow:
                return
            time.sleep(interval)
            continue
        with file:
            rest, replaced = "", False
            while True:
                read = file.readline()
                rest += read
                if rest.endswith("\n"):
                    event = event_of(rest)
                    rest = ""
                    if own is not None and event.more.get("job", own) != own:
                        continue
                    yield event
                    if event.kind == "job-ended":
                        return
                elif not read:
                    if not follow:
                        return
                    if replaced:
                        break
                    replaced = _is_other(file, path)  # there will be one more look into this one
                    if not replaced:
                        time.sleep(interval)


def _is_other(file, path):
    try:
        return not os.path.samestat(os.fstat(file.fileno()), os.stat(path))
    except FileNotFoundError:
        return False  # it is about to be made anew


def _culprit_of(said):
    if said is None:
        return None
    if said["kind"] == "link":
        return Culprit("link", link=(said["from"], said["to"]), both_ways=said["both_ways"])
    return Culprit(said["kind"], rank=said.get("rank"), host=said.get("host"))
