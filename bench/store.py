"""Results as JSON lines, written as they come: a stopped run loses nothing and can go on where it was."""

import json
import os

import measured_code


class Store:
    """Every record says which code it is of: `commit`, and `changes`, a digest of what the tree had beside it (empty:
    nothing). A store that is resumed keeps what earlier code gave, as it is."""

    def __init__(self, path, resume, code):
        self.path = path
        self.code = code
        self.records = []
        os.makedirs(os.path.dirname(os.path.abspath(path)), exist_ok=True)
        if os.path.exists(path):
            if resume:
                self.records = list(_read(path))
            else:
                os.replace(path, path + ".previous")
        self.file = open(path, "a", buffering=1)
        if _torn(path):
            self.file.write("\n")  # what comes now must not be added to the line in which a run was stopped

    def add(self, kind, setting, cell, **values):
        record = {"kind": kind, "transport": setting.transport, "ranks": setting.ranks, "cgroups": setting.cgroups,
                  "collective": cell.collective, "bytes": cell.bytes, **measured_code.as_fields(self.code), **values}
        self.records.append(record)
        self.file.write(json.dumps(record) + "\n")
        return record

    def has(self, kind, setting, cell):
        return any(key(record) == (kind, setting.transport, setting.ranks, setting.cgroups, cell.collective, cell.bytes)
                   for record in self.records)

    def close(self):
        self.file.close()


def key(record):
    return tuple(record[name] for name in ("kind", "transport", "ranks", "cgroups", "collective", "bytes"))


def _torn(path):
    with open(path, "rb") as file:
        content = file.read()
    return content != b"" and not content.endswith(b"\n")


def _read(path):
    with open(path) as lines:
        for line in lines:
            try:
                yield json.loads(line)
            except ValueError:
                pass  # the line in which the run was stopped
