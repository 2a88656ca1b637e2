"""Puts the results between their markers in docs/performance.md; what stands around them is written by hand, and nothing
between them: it goes with the next results."""

import os

import summary
from cells import TRANSPORTS


def write(root, records, machine, command, cgroups, picture):
    path = os.path.join(root, "docs", "performance.md")
    with open(path) as file:
        text = file.read()
    text = replaced(text, "cgroups" if cgroups else "plain", section(records, machine, command, picture))
    with open(path, "w") as file:
        file.write(text)


def replaced(text, name, content):
    """`text` with `content` between the two markers of `name`."""
    begin, end = f"<!-- results: {name} -->\n", f"<!-- end of results: {name} -->"
    if text.count(begin) != 1 or text.count(end) != 1 or text.index(begin) > text.index(end):
        raise RuntimeError(f"docs/performance.md has lost its markers '{begin.strip()}' and '{end}'")
    return text[:text.index(begin) + len(begin)] + content + "\n" + text[text.index(end):]


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
    return "\n\n".join(part for part in parts if part)
