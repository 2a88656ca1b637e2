#!/usr/bin/env python3
"""Our net plugins against what they could be, on the loopback: falcon-socket beside one iperf3 stream, several, and a bare TCP ping-pong; falcon-ucx
beside ucx_perftest, over TCP and over what UCX chooses by itself. Run by `scripts/bench --net`.

Each figure is a median over pairs in turns, plugin and peer, so that what else the machine does meets both; the ratio is the median of the
pairs' ratios. Messages have 1 MiB and eight are under way, as NCCL has them; latency is of 8 B, half a round trip, both ends polling and yielding.
The host engine over the plugin and over its own sockets: `falcon perf sendrecv`, two ranks, shared memory off.
"""

import argparse
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile

import command_line
import measured_code

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
LIBRARIES = os.path.join(ROOT, "build", "release", "lib")
PLUGIN = os.path.join(LIBRARIES, "libnccl-net-falcon-socket.so")
UCX_PLUGIN = os.path.join(LIBRARIES, "libnccl-net-falcon-ucx.so")
FALCON = os.path.join(ROOT, "build", "release", "bin", "falcon")
DRIVER = os.path.join(ROOT, "build", "bench", "bench_net")
PORT = 5231
UCX_WAYS = {"TCP": {"UCX_TLS": "tcp", "UCX_NET_DEVICES": "lo"}, "UCX's choice": {}}
AIMS = {"one stream": (">=", 0.95), "several streams": (">=", 1.0), "latency": ("<=", 1.15)}


def parse_arguments():
    parser = argparse.ArgumentParser(prog="scripts/bench --net", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=int, default=7, help="%(default)s")
    parser.add_argument("--seconds", type=float, default=2, help="of a throughput run; %(default)s")
    parser.add_argument("--streams", type=int, default=2, help="of iperf3, and sockets of the plugin; %(default)s")
    parser.add_argument("--io", default="auto", help="NCCL_FALCON_NET_IO of the plugin: auto, epoll or io_uring; %(default)s")
    parser.add_argument("--json", action="store_true", help="on stdout")
    return command_line.parsed(parser)


def output_of(command, **environment):
    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, **environment}, timeout=120)
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)} failed: {done.stderr.strip() or done.stdout.strip()}")
    return done.stdout


def plugin_throughput(options, sockets):
    return float(output_of([DRIVER, "throughput", PLUGIN, str(1 << 20), str(options.seconds)], NCCL_SOCKET_IFNAME="lo",
                           NCCL_SOCKET_NTHREADS=str(sockets), NCCL_FALCON_NET_IO=options.io))


def iperf_throughput(options, streams):
    """MB/s that came, of all streams together."""
    server = subprocess.Popen(["iperf3", "-s", "-1", "--forceflush", "-p", str(PORT)], stdout=subprocess.PIPE, text=True)
    server.stdout.readline()
    server.stdout.readline()  # it says that it listens
    text = output_of(["iperf3", "-c", "127.0.0.1", "-p", str(PORT), "-P", str(streams), "-t", str(max(1, round(options.seconds))), "-J"])
    server.communicate()
    return json.loads(text)["end"]["sum_received"]["bits_per_second"] / 8e6


def plugin_latency(options):
    return float(output_of([DRIVER, "latency", PLUGIN, "8", "20000"], NCCL_SOCKET_IFNAME="lo", NCCL_FALCON_NET_IO=options.io))


def bare_latency(_):
    return float(output_of([DRIVER, "bare-latency", "-", "8", "20000"]))


def ucx_plugin(way, what, *how):
    return float(output_of([DRIVER, what, UCX_PLUGIN, *how], NCCL_SOCKET_IFNAME="lo", **UCX_WAYS[way]))


def ucx_perftest(way, test, size, count, column, *options):
    """The client's figure; columns as ucx_perftest's CSV has them."""
    port = ["-p", str(PORT)]
    environment = {**os.environ, **UCX_WAYS[way]}
    with subprocess.Popen(["stdbuf", "-oL", "ucx_perftest", *port], env=environment, stdout=subprocess.PIPE, text=True) as server:
        server.stdout.readline()  # it says that it waits
        try:
            what = ["-t", test, "-s", str(size), "-n", str(count), "-w", "100", *options]
            text = output_of(["ucx_perftest", "127.0.0.1", *port, *what, "-f", "-v"], **UCX_WAYS[way])
        finally:
            server.terminate()
            server.communicate()
    names, values = text.strip().splitlines()[-2:]
    return float(dict(zip(names.split(","), values.split(",")))[column])


def ucx_throughput(way):
    return 1.048576 * ucx_perftest(way, "tag_bw", 1 << 20, 3000, "overall_bw", "-O", "8")  # it counts in MiB


def ucx_latency(way):
    return ucx_perftest(way, "tag_lat", 8, 20000, "overall_lat")


def ucx_rows(options):
    rows = []
    for way in UCX_WAYS:
        rows.append(measured(options, f"UCX over {way}", lambda way=way: ucx_plugin(way, "throughput", str(1 << 20), str(options.seconds)), lambda way=way: ucx_throughput(way)))
        rows.append(measured(options, f"UCX over {way}, latency", lambda way=way: ucx_plugin(way, "latency", "8", "20000"), lambda way=way: ucx_latency(way)))
    return rows


def engine_bandwidth(plugin):
    """Mean bus bandwidth in GB/s of messages of 4 MiB."""
    environment = {"NCCL_FALCON": "0", "NCCL_SHM_DISABLE": "1", "NCCL_SOCKET_IFNAME": "lo", "NCCL_NET_PLUGIN": plugin}
    with tempfile.NamedTemporaryFile(suffix=".json") as results:
        output_of([FALCON, "run", "-n", "2", "--", FALCON, "perf", "sendrecv", "-b", "4M", "-e", "4M", "-J", results.name], **environment)
        found = re.search(r'"bandwidth": *([0-9.eE+-]+)', results.read().decode())
    if not found:
        sys.exit("falcon perf wrote no bandwidth")
    return float(found.group(1))


def measured(options, what, ours, peer):
    pairs = []
    for number in range(options.pairs):
        turns = [("ours", ours), ("peer", peer)]
        if number % 2:
            turns.reverse()
        pairs.append({name: measure() for name, measure in turns})
        print(f"{what}: {number + 1} of {options.pairs}", file=sys.stderr)
    ratio = statistics.median(pair["ours"] / pair["peer"] for pair in pairs)
    return {"what": what, "ours": statistics.median(pair["ours"] for pair in pairs), "peer": statistics.median(pair["peer"] for pair in pairs), "ratio": ratio}


def main():
    options = parse_arguments()
    code = measured_code.of_tree()
    rows = [
        measured(options, "one stream", lambda: plugin_throughput(options, 1), lambda: iperf_throughput(options, 1)),
        measured(options, "several streams", lambda: plugin_throughput(options, options.streams), lambda: iperf_throughput(options, options.streams)),
        measured(options, "latency", lambda: plugin_latency(options), lambda: bare_latency(options)),
        measured(options, "host engine", lambda: engine_bandwidth(PLUGIN), lambda: engine_bandwidth("none")),
    ] + (ucx_rows(options) if os.path.exists(UCX_PLUGIN) else [])
    missed = []
    for row in rows:
        sign, aim = AIMS.get(row["what"], (None, None))
        row["aim"] = f"{sign} {aim}" if sign else ""
        if sign and not (row["ratio"] >= aim if sign == ">=" else row["ratio"] <= aim):
            missed.append(row["what"])
    if options.json:
        print(json.dumps([row | measured_code.as_fields(code) for row in rows], indent=2))
    else:
        print(f"All figures are of {code}.\n")
        print("| | ours | peer | ratio | aim |\n|---|---|---|---|---|")
        for row in rows:
            unit = "us" if "latency" in row["what"] else "GB/s" if row["what"] == "host engine" else "MB/s"
            print(f"| {row['what']} | {row['ours']:.1f} {unit} | {row['peer']:.1f} {unit} | {row['ratio']:.2f} | {row['aim']} |")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
