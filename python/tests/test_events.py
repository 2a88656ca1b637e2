"""Falcon's events as objects, without PyTorch."""

import json
import os
import threading
from array import array

import pytest
from test_native import ALL_REDUCE, INT32, address, run_ranks

import nccl_falcon
from nccl_falcon import _native


def line(kind, **more):
    return json.dumps({"v": 1, "kind": kind, "time_s": 5, "wall_time_s": 1.5e9, "iteration": 7, "text": "t", **more}) + "\n"


def test_a_line_becomes_an_object():
    event = nccl_falcon.event_of(line("verdict", confidence=0.9, severity=3, before_ms=10, after_ms=14.5, culprit={"kind": "rank", "rank": 2}, new=1))
    assert (event.kind, event.time, event.iteration, event.confidence, event.severity) == ("verdict", 1.5e9, 7, 0.9, 3)
    assert (event.before_ms, event.after_ms, event.duration) == (10, 14.5, None)
    assert event.culprit == nccl_falcon.Culprit("rank", rank=2)
    assert event.more["new"] == 1
    link = nccl_falcon.event_of(line("verdict", culprit={"kind": "link", "from": 1, "to": 3, "both_ways": True})).culprit
    assert (link.link, link.both_ways, link.rank) == ((1, 3), True, None)
    assert nccl_falcon.event_of(line("verdict", culprit={"kind": "host", "host": "h1"})).culprit.host == "h1"
    assert nccl_falcon.event_of(line("relief")).culprit is None


@pytest.mark.parametrize("text", ["", "{", "[]", '{"v": 2}', '{"v": 1, "kind": "relief"}'])
def test_what_is_no_event_is_refused(text):
    with pytest.raises(ValueError):
        nccl_falcon.event_of(text)


def test_a_file_is_read_as_far_as_its_lines_are_whole(tmp_path):
    path = tmp_path / "events.jsonl"
    path.write_text(line("onset") + line("relief") + line("onset")[:20])
    assert [event.kind for event in nccl_falcon.events(path)] == ["onset", "relief"]
    assert list(nccl_falcon.events(tmp_path / "none")) == []


def test_a_file_is_followed_through_its_successors_until_the_job_ends(tmp_path):
    path, kinds, arrived = tmp_path / "events.jsonl", [], threading.Semaphore(0)

    def follow():
        for event in nccl_falcon.events(path, follow=True, interval=0.01):
            kinds.append(event.kind)
            arrived.release()

    follower = threading.Thread(target=follow)
    follower.start()
    path.write_text(line("onset")[:10])
    with path.open("a") as file:
        file.write(line("onset")[10:] + line("verdict"))
    for _ in range(2):
        assert arrived.acquire(timeout=20)
    os.rename(path, tmp_path / "events.jsonl.1")
    path.write_text(line("relief") + line("job-ended"))
    follower.join(20)
    assert kinds == ["onset", "verdict", "relief", "job-ended"]


def own(identity, ranks, rank):
    communicator = _native.Communicator.create(identity, ranks, rank, 30)
    kind = next(iter(nccl_falcon.events(follow=True))).kind if rank == 0 else None
    path = nccl_falcon.events_path()
    values = array("i", [rank])
    communicator.run(ALL_REDUCE, address(values), address(values), 1, INT32, 0, -1)
    communicator.close()
    return kind, path


def test_a_process_finds_the_events_of_its_own_job(monkeypatch, tmp_path):
    monkeypatch.setenv("NCCL_FALCON", "1")
    kind, path = run_ranks(2, own)[0]
    assert kind == "job-started"
    assert path.endswith("/events.jsonl")
    monkeypatch.setenv("NCCL_FALCON_EVENTS", str(tmp_path / "chosen"))
    assert run_ranks(2, own)[0] == ("job-started", str(tmp_path / "chosen"))


def test_without_a_job_it_says_what_is_missing():
    with pytest.raises(FileNotFoundError, match="NCCL_FALCON=1"):
        next(iter(nccl_falcon.events()))
