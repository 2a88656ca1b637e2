"""Results as JSON lines, written as they come: a stopped run loses nothing and can go on where it was."""

import json
import os


class Store:
    def __init__(self, path, resume):
        self.path = path
        self.records = []
        os.makedirs(os.path.dirname(path), exist_ok=True)
        if os.path.exists(path):
            if resume:
                self.records = list(_read(path))
            else:
                os.replace(path, path + ".previous")
        self.file = open(path, "a", buffering=1)

    def add(self, kind, setting, cell, **values):
        record = {"kind": kind, "transport": setting.transport, "ranks": setting.ranks, "cgroups": setting.cgroups,
                  "collective": cell.collective, "bytes": cell.bytes, **values}
        self.records.append(record)
        self.file.write(json.dumps(record) + "\n")
        return record

    def has(self, kind, setting, cell):
        return any(key(record) == (kind, setting.transport, setting.ranks, setting.cgroups, cell.collective, cell.bytes)
                   for record in self.records)

    def of(self, kind):
        return [record for record in self.records if record["kind"] == kind]


def key(record):
    return tuple(record[name] for name in ("kind", "transport", "ranks", "cgroups", "collective", "bytes"))


def _read(path):
    with open(path) as lines:
        for line in lines:
            try:
                yield json.loads(line)
            except ValueError:
                pass  # the line in which the run was stopped
