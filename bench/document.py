"""Puts the results between their markers in docs/performance.md; what stands around them is written by hand, and nothing
between them: it goes with the next results. The last line between them is a digest of the others, by which a figure that
was typed there is found."""

import hashlib
import os
import re

import summary
from cells import TRANSPORTS

DIGEST = re.compile(r"\n\n<!-- digest of what stands above: [0-9a-f]{16} -->\n")


def write(root, records, machine, command, cgroups, picture):
    path = os.path.join(root, "docs", "performance.md")
    with open(path) as file:
        text = file.read()
    text = replaced(text, "cgroups" if cgroups else "plain", section(records, machine, command, picture))
    with open(path, "w") as file:
        file.write(text)


def replaced(text, name, content):
    """`text` with `content` between the two markers of `name`."""
    begin, end = _places(text, name)
    return text[:begin] + content + "\n" + text[end:]


def altered(text, name):
    """Whether what stands between the markers of `name` is not what was generated; None where it has no digest, as of a time
    when none was written."""
    begin, end = _places(text, name)
    content = text[begin:end]
    found = DIGEST.search(content)
    if not found:
        return None
    return content != f"{_with_digest(content[:found.start()])}\n"


def section(records, machine, command, picture):
    parts = [f"`scripts/bench {command}` on this machine:",
             summary.table(["machine", ""], [[name, value] for name, value in machine.items()]),
             summary.origin(records), summary.headline(records), f"![ratios by size]({picture})", summary.geometric_means(records)]
    parts += ["The ratios cell by cell, best peer's time over ours; below 1 in bold."]
    parts += [summary.ratios(records, one) for one in TRANSPORTS if any(record["transport"] == one for record in records)]
    for words, figures in (
            ("What `NCCL_FALCON=1` costs: its time over that with 0, interleaved, the geometric mean of all cells of a size.",
             summary.watching(records)),
            ("How far from the limit of copying memory, in shared memory, the geometric mean of all collectives and ranks.",
             summary.limits(records))):
        parts += [words, figures] if figures else []
    failed = summary.failures(records)
    parts += ["Peers that could not be measured in a cell:", failed] if failed else []
    parts += ["<details><summary>Every cell</summary>", summary.times(records), "</details>"]
    return _with_digest("\n\n".join(part for part in parts if part))


def _with_digest(content):
    return f"{content}\n\n<!-- digest of what stands above: {hashlib.sha256(content.encode()).hexdigest()[:16]} -->"


def _places(text, name):
    """Where what stands between the markers of `name` begins and ends."""
    begin, end = f"<!-- results: {name} -->\n", f"<!-- end of results: {name} -->"
    if text.count(begin) != 1 or text.count(end) != 1 or text.index(begin) > text.index(end):
        raise RuntimeError(f"docs/performance.md has lost its markers '{begin.strip()}' and '{end}'")
    return text.index(begin) + len(begin), text.index(end)
