"""Which code a figure is of: every record names its commit, and a table that mixes commits marks every figure."""

import dataclasses
import hashlib
import os
import string
import subprocess

# What the measured programs, and the way they are measured, are made of. Documents are not: writing them changes no figure.
SOURCES = ["CMakeLists.txt", "CMakePresets.json", "bench", "cmake", "ext-net", "include", "plugins", "python", "scripts/bench", "src", "tools"]


@dataclasses.dataclass(frozen=True)
class MeasuredCode:
    commit: str  # the whole hash; empty: unknown
    changes: str = ""  # digest of what the tree has beside its commit; empty: nothing

    def __str__(self):
        if not self.commit:
            return "an unknown commit"
        dirty = f" with uncommitted changes ({self.changes})" if self.changes else ""
        return f"commit {self.commit[:10]}{dirty}"


UNKNOWN = MeasuredCode("")


def of_tree(root=os.path.dirname(os.path.dirname(os.path.abspath(__file__)))):
    """The code in the working tree of `root`; UNKNOWN where git cannot tell."""
    try:
        commit = _git(root, "rev-parse", "HEAD").decode().strip()
        changes = _git(root, "diff", "--binary", "--no-ext-diff", "--no-color", "HEAD", "--", *SOURCES)
        new = _git(root, "ls-files", "--others", "--exclude-standard", "-z", "--", *SOURCES).split(b"\0")[:-1]
        for path in sorted(new):
            with open(os.path.join(os.fsencode(root), path), "rb") as file:
                changes += b"\0" + path + b"\0" + file.read()
    except (OSError, subprocess.CalledProcessError):
        return UNKNOWN
    return MeasuredCode(commit, hashlib.sha256(changes).hexdigest()[:8] if changes else "")


def of_record(record):
    """UNKNOWN for records of a time when they named no commit."""
    return MeasuredCode(record.get("commit") or "", record.get("changes") or "")


def as_fields(code):
    """What a record says of its code."""
    return {"commit": code.commit, "changes": code.changes}


def resuming(records, code):
    """What a run of `code` that goes on with `records` has to say; empty where all are of one known code."""
    if code != UNKNOWN and all(of_record(record) == code for record in records):
        return ""
    earlier = "; ".join(f"{count} of {one}" for one, count in _counted(records).items())
    return (f"the earlier records are kept: {earlier}; this run measures {code}. The tables mark which is which. "
            "Without --resume everything is measured by one.")


class Marks:
    """A letter for each code among the records, in the order in which they come; none where there is one code only."""

    def __init__(self, records):
        self.counts = _counted(records)
        self.letters = {code: string.ascii_lowercase[number % 26] * (1 + number // 26)
                        for number, code in enumerate(self.counts)}

    def of(self, *records):
        """What stands behind a figure that was made of these records: ' (a)', or ' (a, b)'."""
        if len(self.letters) < 2:
            return ""
        found = {self.letters[of_record(record)] for record in records}
        return f" ({', '.join(letter for letter in self.letters.values() if letter in found)})" if found else ""

    def legend(self):
        """A sentence, or a list of what the marks mean."""
        if len(self.letters) < 2:
            return "".join(f"All figures are of {code}{_reason(code)}." for code in self.letters)
        lines = ["The figures are not all of the same code. Each is marked with the code that it was measured of, one that is "
                 "made of several with each of them:", ""]
        return "\n".join(lines + [f"- ({letter}) {code}{_reason(code)}, records: {self.counts[code]}"
                                  for code, letter in self.letters.items()])


def _reason(code):
    return "" if code.commit else " (the records name none, perhaps not the same one for all)"


def _counted(records):
    counts = {}
    for record in records:
        code = of_record(record)
        counts[code] = counts.get(code, 0) + 1
    return counts


def _git(root, *words):
    return subprocess.run(["git", "-C", root, *words], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=True).stdout


if __name__ == "__main__":  # for scripts: the figures that follow are of this code
    print(of_tree())
