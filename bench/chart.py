"""The ratios as an SVG picture: a line for each collective over the sizes, the geometric mean over the numbers of ranks."""

import math
import os

from cells import COLLECTIVES, TRANSPORTS, size_name
from measured_code import Marks
from summary import compared, geometric_mean

COLOURS = ["#0b6e99", "#d9730d", "#448361", "#ad1a72", "#6940a5", "#dfab01", "#e03e3e", "#64473a", "#787774"]
WIDTH, HEIGHT, LEFT, TOP, RIGHT, BOTTOM = 620, 330, 50, 34, 130, 42
TICKS = [0.25, 0.5, 1, 2, 4, 8, 16, 32]


def write(root, records, cgroups):
    """The picture's path, as docs/performance.md names it."""
    name = f"performance{'-cgroups' if cgroups else ''}.svg"
    with open(os.path.join(root, "docs", name), "w") as file:
        file.write(draw(records))
    return name


def draw(records):
    cells = compared(records)
    transports = [one for one in TRANSPORTS if any(record["transport"] == one for record in cells)]
    marks, panels = Marks(records), []
    for number, transport in enumerate(transports):
        here = [record for record in cells if record["transport"] == transport]
        panels.append(_panel(here, transport + marks.of(*here), number * HEIGHT))
    return (f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{HEIGHT * len(panels)}" '
            'font-family="sans-serif" font-size="11">\n<rect width="100%" height="100%" fill="white"/>\n'
            + "".join(panels) + "</svg>\n")


def _panel(cells, transport, offset):
    sizes = sorted({record["bytes"] for record in cells})
    lines = {}
    for collective in COLLECTIVES:
        found = {}
        for record in cells:
            if record["collective"] == collective:
                found.setdefault(record["bytes"], []).append(record["ratio"])
        if found:
            lines[collective] = {size: geometric_mean(ratios) for size, ratios in found.items()}
    values = [ratio for line in lines.values() for ratio in line.values()]
    ticks = [tick for tick in TICKS if min(values + [0.5]) / 2 < tick < max(values + [2]) * 2]
    low, high = math.log(ticks[0]), math.log(ticks[-1])

    def across(size):
        return LEFT + sizes.index(size) * (WIDTH - LEFT - RIGHT) / max(1, len(sizes) - 1)

    def up(ratio):
        share = (math.log(ratio) - low) / (high - low)
        return offset + HEIGHT - BOTTOM - share * (HEIGHT - TOP - BOTTOM)

    parts = [_text(LEFT, offset + 18, f"Best peer's time over ours, {transport}; above 1 ours is faster", "start", "bold")]
    for tick in ticks:
        colour = "#333" if tick == 1 else "#ddd"
        parts.append(f'<line x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{up(tick):.1f}" y2="{up(tick):.1f}" stroke="{colour}"/>\n')
        parts.append(_text(LEFT - 6, up(tick) + 4, f"{tick:g}", "end"))
    for size in sizes:
        parts.append(_text(across(size), offset + HEIGHT - BOTTOM + 18, size_name(size), "middle"))
    for number, (collective, line) in enumerate(lines.items()):
        colour = COLOURS[COLLECTIVES.index(collective)]
        points = " ".join(f"{across(size):.1f},{up(line[size]):.1f}" for size in sorted(line))
        parts.append(f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="2"/>\n')
        parts += [f'<circle cx="{across(size):.1f}" cy="{up(line[size]):.1f}" r="3" fill="{colour}"/>\n' for size in line]
        parts.append(_text(WIDTH - RIGHT + 14, offset + TOP + 14 + 17 * number, collective, "start", "bold", colour))
    return "".join(parts)


def _text(x, y, words, anchor, weight="normal", colour="#333"):
    return (f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-weight="{weight}" fill="{colour}">'
            f'{words}</text>\n')
