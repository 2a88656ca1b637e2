"""Every cell is measured as often, whatever it shows; and what a cell's ratio and its best peer are."""

import unittest

import bench
import cells
import libraries
import pairing

OURS, FIRST, SECOND, FAR = (libraries.Library(name, None) for name in ("ours", "first", "second", "far"))
CELL = cells.Cell("all_reduce", 8)
EFFORT = bench.Effort([8], 0.01, 10, 2, 1.25)


class Crew:
    """Libraries whose times are known: a number, or a function of how often it was measured."""

    def __init__(self, **times):
        self.times, self.counts, self.order = times, {}, []

    def measure(self, library, cell, seconds, verify=False):
        number = self.counts[library] = self.counts.get(library, 0) + 1
        self.order.append(library)
        time = self.times[library.name]
        return time(number) if callable(time) else time


class ACell(unittest.TestCase):
    def measured(self, peers=(FIRST, SECOND, FAR), effort=EFFORT, **times):
        crew = Crew(**times)
        return crew, pairing.measure_cell(crew, OURS, list(peers), CELL, effort)

    def test_is_measured_as_often_whether_it_is_lost_won_or_close(self):
        counts = set()
        for ours in (0.1, 0.9, 0.95, 0.99, 1, 1.01, 1.05, 1.06, 2, 20):
            crew, record = self.measured(ours=ours, first=1, second=1.1, far=9)
            counts.add(tuple(crew.counts[library] for library in (OURS, FIRST, SECOND, FAR)))
            self.assertEqual({name: len(pairs) for name, pairs in record["pairs"].items()}, {"first": 10, "second": 10})
            self.assertAlmostEqual(record["ratio"], 1 / ours)
        self.assertEqual(len(counts), 1, counts)

    def test_the_best_peer_is_the_one_with_the_lowest_median_and_not_the_luckiest_first_look(self):
        _, record = self.measured(ours=1, first=lambda number: 0.9 if number <= 2 else 1.1, second=1, far=9)
        self.assertEqual(record["best"], "second")
        self.assertEqual((record["ratio"], record["best_us"], record["ours_us"]), (1, 1, 1))

    def test_the_ratio_is_the_median_over_its_pairs(self):
        _, record = self.measured([FIRST], ours=lambda number: 100 if number == 3 else 2, first=3)
        self.assertEqual(record["ratio"], 1.5)

    def test_who_goes_first_alternates(self):
        crew = Crew(ours=1, first=1)
        pairing.interleaved(crew, OURS, FIRST, CELL, 4, 0.01)
        self.assertEqual(crew.order, [OURS, FIRST, FIRST, OURS, OURS, FIRST, FIRST, OURS])

    def test_of_the_defaults_lets_each_go_first_as_often(self):
        for effort in (bench.QUICK, bench.FULL):
            self.assertEqual(effort.pairs % 2, 0)
            self.assertGreaterEqual(effort.pairs, bench.LEAST_PAIRS)


if __name__ == "__main__":
    unittest.main()
