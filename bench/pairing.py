"""Measures a cell: ours and a peer in turn, so that what the machine does meanwhile hits both alike."""

import statistics

from job import Job, JobFailed


class Crew:
    """The jobs of one setting, kept alive; one that fails is started again, twice at most for a cell."""

    def __init__(self, stack, setting, paths, logs, cgroups, say):
        self.stack, self.setting = stack, setting
        self.paths, self.logs, self.cgroups, self.say = paths, logs, cgroups, say
        self.jobs = {}

    def add(self, library):
        self.jobs[library] = self._started(library)

    def measure(self, library, cell, seconds, verify=False):
        """Microseconds a call; None if the library does not have this collective."""
        for attempt in range(3):
            try:
                if self.jobs[library] is None:
                    self.jobs[library] = self._started(library)
                result = self.jobs[library].measure(cell, seconds, 3, verify)
                return statistics.median(result["microseconds"]) if result["supported"] else None
            except JobFailed as failure:
                self.say(str(failure))
                if self.jobs[library]:
                    self.jobs[library].__exit__(None, None, None)
                    self.jobs[library] = None
                if attempt == 2:
                    raise

    def _started(self, library):
        job = Job(library, self.setting, self.paths, self.logs, self.cgroups)
        job.__enter__()
        self.stack.push(lambda *exception: job.__exit__())
        return job


def interleaved(crew, one, other, cell, pairs, seconds):
    """[(one's time, other's time), ...]; who goes first alternates."""
    found = []
    for number in range(pairs):
        order = (one, other) if number % 2 == 0 else (other, one)
        times = {library: crew.measure(library, cell, seconds) for library in order}
        found.append((times[one], times[other]))
    return found


def median_ratio(pairs):
    """How many times faster the first of a pair is."""
    return statistics.median(other / one for one, other in pairs)


def scout(crew, peers, cell, seconds):
    """Each peer's time, the better of two, with its results checked; and why those that failed did."""
    times, failures = {}, {}
    for peer in peers:
        try:
            found = [crew.measure(peer, cell, seconds, verify) for verify in (True, False)]
            if None not in found:
                times[peer] = min(found)
        except JobFailed as failure:
            failures[peer.name] = str(failure)
    return times, failures


def contenders(times, closeness, most):
    """Those that may turn out best."""
    least = min(times.values())
    near = sorted((peer for peer in times if times[peer] <= closeness * least), key=times.get)
    return near[:most]


def measure_against(crew, ours, peers, cell, pairs, seconds):
    """Pairs with each of the peers; the best is the one with the lowest median."""
    by_peer = {peer.name: interleaved(crew, ours, peer, cell, pairs, seconds) for peer in peers}
    best = min(by_peer, key=lambda name: statistics.median(theirs for _, theirs in by_peer[name]))
    return by_peer, best


def measure_cell(crew, ours, peers, cell, effort):
    """The record of one cell. Every cell has as many pairs, whatever they show: to measure again only what was lost would
    give bad luck a second chance, and good luck none."""
    crew.measure(ours, cell, effort.seconds, verify=True)
    times, failures = scout(crew, peers, cell, effort.seconds)
    record = {"scouted": {peer.name: round(time, 3) for peer, time in times.items()}, "failures": failures}
    if not times:
        return record
    chosen = contenders(times, effort.closeness, effort.contenders)
    by_peer, best = measure_against(crew, ours, chosen, cell, effort.pairs, effort.seconds)
    record |= {"pairs": by_peer, "best": best, "ratio": median_ratio(by_peer[best]),
               "ours_us": statistics.median(mine for mine, _ in by_peer[best]),
               "best_us": statistics.median(theirs for _, theirs in by_peer[best])}
    return record
