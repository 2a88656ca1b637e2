#!/usr/bin/env python3
"""Reads what the table test goes through out of headers and facts.
  generate.py functions HEADER...   a line FUNCTION(result, name, (parameters), arguments...) for each ncclX that they declare
  generate.py exports VERSION.names the version script of a library that has the functions of that release
"""
import re
import sys


def functions(headers):
    rows = {}
    for header in headers:
        with open(header, encoding="utf-8") as file:
            text = re.sub(r"/\*.*?\*/|//[^\n]*", "", file.read(), flags=re.S)
        declaration = r"(?:NCCL_FALCON_OLD\s+)?((?:const\s+)?\w+(?:\s*\*+)?)\s*\b(nccl[A-Z]\w*)\s*\(([^()]*)\)\s*;"
        for result, name, parameters in re.findall(declaration, text):
            parameters = " ".join(parameters.split())
            arguments = [] if parameters == "void" else [re.search(r"(\w+)$", each).group(1) for each in parameters.split(",")]
            rows[name] = f"FUNCTION({', '.join([' '.join(result.split()), name, f'({parameters})', *arguments])})"
    if not rows:
        sys.exit(f"generate.py: no function was found in {', '.join(headers)}")
    return "\n".join(rows[name] for name in sorted(rows)) + "\n"


def exports(path):
    names = []
    with open(path, encoding="utf-8") as file:
        for line in file:
            name, twin, _ = line.split()
            names += [name, "p" + name] if twin == "twin" else [name]
    return "{\n  global:\n" + "".join(f"    {name};\n" for name in names) + "    vendor*;\n  local:\n    *;\n};\n"


if __name__ == "__main__":
    kind, *paths = sys.argv[1:] or [""]
    if kind == "functions" and paths:
        sys.stdout.write(functions(paths))
    elif kind == "exports" and len(paths) == 1:
        sys.stdout.write(exports(paths[0]))
    else:
        sys.exit(__doc__)
