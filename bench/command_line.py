"""The options of the programs behind scripts/bench."""

import argparse


def parsed(parser):
    """As parser.parse_args(); with --check, which scripts/bench asks for before it installs and builds anything, the program ends there."""
    parser.add_argument("--check", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.check:
        parser.exit()
    return options
