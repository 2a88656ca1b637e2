"""What the records say, as text that is Markdown too. Where they are of several commits every figure is marked."""

import math

from cells import COLLECTIVES, TRANSPORTS, size_name
from measured_code import Marks

AIMS = {"all_reduce": 1.5, "all_gather": 1.5, "reduce_scatter": 1.5}
OTHER_AIM = 1.2


def geometric_mean(values):
    return math.exp(sum(map(math.log, values)) / len(values))


def duration(microseconds):
    if microseconds < 999.5:
        return f"{microseconds:.3g} µs"
    return f"{microseconds / 1000:.3g} ms"


def table(head, rows):
    lines = ["| " + " | ".join(head) + " |", "|" + "|".join("---" if i == 0 else "---:" for i in range(len(head))) + "|"]
    return "\n".join(lines + ["| " + " | ".join(map(str, row)) + " |" for row in rows])


def compared(records):
    return [record for record in records if "ratio" in record]


def origin(records):
    """Which code the figures are of, and how often each cell was measured."""
    return f"{Marks(records).legend()}\n\n{_pairs_said(records)}"


def _pairs_said(records):
    counts = {}
    for record in compared(records):
        pairs = max(map(len, record["pairs"].values()))
        counts[pairs] = counts.get(pairs, 0) + 1
    if len(counts) == 1:
        text = f"Every cell was measured in {next(iter(counts))} pairs with each peer that was near the fastest."
    else:
        text = "Not every cell was measured as often: " + ", ".join(
            f"{counts[pairs]} in {pairs} pairs" for pairs in sorted(counts)) + "."
    again = sum("first_ratio" in record for record in compared(records))
    return text + (f" {again} cells were measured a second time because the first ratio was below 1.05, by an earlier rule."
                   if again else "")


def headline(records):
    cells = compared(records)
    won = sum(record["ratio"] >= 1 for record in cells)
    worst = min(cells, key=lambda record: record["ratio"])
    return (f"{won} of {len(cells)} cells ({100 * won / len(cells):.0f} %) are at least as fast as the best peer"
            f"{Marks(records).of(*cells)}. "
            f"Worst cell: {cell_name(worst)}, {worst['ratio']:.2f} of {worst['best']}"
            f"{Marks(records).of(worst)}.")


def cell_name(record):
    return f"{record['collective']} {size_name(record['bytes'])}, {record['ranks']} ranks, {record['transport']}"


def geometric_means(records):
    cells, marks = compared(records), Marks(records)
    transports = [one for one in TRANSPORTS if any(record["transport"] == one for record in cells)]
    rows = []
    for collective in COLLECTIVES:
        row = [collective]
        for transport in transports:
            here = [record for record in cells
                    if (record["collective"], record["transport"]) == (collective, transport)]
            row.append(f"{geometric_mean([record['ratio'] for record in here]):.2f}{marks.of(*here)}" if here else "")
        if any(row[1:]):
            rows.append([*row, AIMS.get(collective, OTHER_AIM)])
    return table(["geometric mean", *transports, "aim"], rows)


def ratios(records, transport):
    """A row for each collective and number of ranks, a column for each size."""
    marks = Marks(records)
    cells = [record for record in compared(records) if record["transport"] == transport]
    sizes = sorted({record["bytes"] for record in cells})
    rows = []
    for collective, ranks in sorted({(record["collective"], record["ranks"]) for record in cells},
                                    key=lambda one: (COLLECTIVES.index(one[0]), one[1])):
        at = {record["bytes"]: record for record in cells
              if (record["collective"], record["ranks"]) == (collective, ranks)}
        rows.append([f"{collective} {ranks}", *(_ratio(at.get(size), marks) for size in sizes)])
    return table([f"{transport}, ranks", *map(size_name, sizes)], rows)


def _ratio(record, marks):
    if record is None:
        return ""
    text = f"{record['ratio']:.2f}"
    return (f"**{text}**" if record["ratio"] < 1 else text) + marks.of(record)


def times(records):
    """Every cell: our time, the best peer and its time, the ratio, and Falcon switched on. A row's mark stands behind its
    cell, but for the figure of Falcon, which is a record of its own."""
    marks = Marks(records)
    watched = {place(record): record for record in records if record["kind"] == "watching"}
    rows = []
    for record in compared(records):
        on = watched.get(place(record))
        rows.append([cell_name(record) + marks.of(record), duration(record["ours_us"]), record["best"], duration(record["best_us"]),
                     f"{record['ratio']:.2f}", f"{on['slowdown']:.2f}{marks.of(on)}" if on else "",
                     f"{record['ours_us'] / record['limit_us']:.1f}" if record.get("limit_us") else ""])
    return table(["cell", "ours", "best peer", "its time", "ratio", "=1 over =0", "over memcpy"], rows)


def place(record):
    return tuple(record[name] for name in ("transport", "ranks", "cgroups", "collective", "bytes"))


def watching(records):
    """What NCCL_FALCON=1 costs."""
    found = {}
    for record in records:
        if record["kind"] == "watching":
            found.setdefault((record["transport"], record["bytes"]), []).append(record)
    sizes, marks = sorted({size for _, size in found}), Marks(records)
    rows = []

    def mean(here):
        return f"{geometric_mean([record['slowdown'] for record in here]):.2f}{marks.of(*here)}" if here else ""

    for transport in TRANSPORTS:
        if any(one == transport for one, _ in found):
            rows.append([transport, *(mean(found.get((transport, size), [])) for size in sizes)])
    return table(["time with NCCL_FALCON=1 over =0", *map(size_name, sizes)], rows) if rows else ""


def limits(records):
    """By size: how far from the copying limit, the geometric mean over collectives, in shared memory."""
    rows, marks = [], Marks(records)
    cells = [record for record in compared(records) if record.get("limit_us") and record["transport"] == "shm"]
    for size in sorted({record["bytes"] for record in cells}):
        here = [record for record in cells if record["bytes"] == size]
        of_ours = geometric_mean([record["ours_us"] / record["limit_us"] for record in here])
        of_best = geometric_mean([record["best_us"] / record["limit_us"] for record in here])
        rows.append([size_name(size), f"{of_ours:.1f}{marks.of(*here)}", f"{of_best:.1f}{marks.of(*here)}"])
    return table(["size", "ours over memcpy", "best peer over memcpy"], rows) if rows else ""


def failures(records):
    found, marks = {}, Marks(records)
    for record in records:
        for why in record.get("failures", {}).values():
            found.setdefault(why, []).append(record)
    return "\n".join(f"- {why}{marks.of(*found[why])}" for why in sorted(found))


def copy_limit(collective, ranks, cores, copy_us):
    """Microseconds that copying alone takes: every rank's result is written once (of a Gather the root's, of a Scatter
    what the root sends), or its input read once where there is more of that, by all cores together at the speed that
    `min(ranks, cores)` copies of this size at a time were measured to have."""
    busy = min(ranks, cores)
    copies = 1 if collective in ("gather", "scatter") else ranks
    return copy_us * copies / busy
