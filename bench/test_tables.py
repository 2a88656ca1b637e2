"""What a reader of docs/performance.md sees: of which commit each figure is, and nothing between the marks but what was generated."""

import json
import os
import re
import tempfile
import unittest

import cells
import chart
import document
import measured_code
import store
import summary
from measured_code import MeasuredCode

ONE, OTHER = MeasuredCode("1" * 40), MeasuredCode("2" * 40, "abcd1234")
MACHINE = {"processor": "a processor", "cores": 2}
AROUND = ("# Title\n\nby hand, before\n\n<!-- results: plain -->\n{plain}<!-- end of results: plain -->\n\nby hand, between\n\n"
          "<!-- results: cgroups -->\n{cgroups}<!-- end of results: cgroups -->\nby hand, after\n")
FIGURE = re.compile(r"\d\.\d\d")


def measured(ratio, pairs=10, **values):
    ours, theirs = 2.0, 2.0 * ratio
    return {"failures": {}, "pairs": {"peer": [[ours, theirs]] * pairs}, "best": "peer", "ratio": ratio, "ours_us": ours,
            "best_us": theirs, "limit_us": 1.0, **values}


class InAFolder(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = folder.name
        self.path = os.path.join(self.root, "results", "some.jsonl")

    def run_of(self, code, sizes, resume=True, kinds=("cell", "watching"), **values):
        """Measures these sizes, as a run of that code does: what is there already is kept."""
        results = store.Store(self.path, resume, code)
        self.addCleanup(results.close)
        for transport in cells.TRANSPORTS:
            for size in sizes:
                setting, cell = cells.Setting(transport, 2, False), cells.Cell("all_reduce", size)
                if "cell" in kinds and not results.has("cell", setting, cell):
                    results.add("cell", setting, cell, **measured(0.9 if size == 8 else 1.4, **values))
                if "watching" in kinds and not results.has("watching", setting, cell):
                    results.add("watching", setting, cell, pairs=[[1, 1.1]], slowdown=1.1)
        return results.records

    def without_commit(self):
        """Makes the results what they were before records named a commit."""
        with open(self.path) as file:
            records = [json.loads(line) for line in file]
        with open(self.path, "w") as file:
            for record in records:
                del record["commit"], record["changes"]
                file.write(json.dumps(record) + "\n")


class Records(InAFolder):
    def test_name_their_commit_and_what_the_tree_had_beside_it(self):
        self.run_of(ONE, [8])
        self.run_of(OTHER, [8, 64])
        with open(self.path) as file:
            found = [json.loads(line) for line in file]
        self.assertEqual([(record["bytes"], record["commit"][0], record["changes"]) for record in found],
                         [(8, "1", "")] * 4 + [(64, "2", "abcd1234")] * 4)

    def test_of_an_earlier_run_are_put_aside_without_resume(self):
        self.run_of(ONE, [8])
        self.assertEqual({record["commit"] for record in self.run_of(OTHER, [8], resume=False)}, {OTHER.commit})

    def test_are_all_read_again_where_a_run_was_stopped_in_a_line(self):
        self.run_of(ONE, [8])
        with open(self.path, "a") as file:
            file.write('{"kind": "cell", "tran')
        self.run_of(ONE, [64])
        self.assertEqual(len(self.run_of(ONE, [])), 8)


class Tables(InAFolder):
    def section(self, records):
        return document.section(records, MACHINE, "--quick", "performance.svg")

    def figures(self, text):
        """The rows of all tables that have ratios: the figures, each with what stands behind it."""
        return [cell.strip() for line in text.splitlines() if line.startswith("|") for cell in line.split("|")
                if FIGURE.search(cell)]

    def test_of_one_commit_say_so_once_and_have_no_marks(self):
        text = self.section(self.run_of(ONE, [8, 64]))
        self.assertEqual(text.count("All figures are of commit 1111111111."), 1)
        self.assertNotRegex(text, r"\([a-z]\)")

    def test_of_a_resumed_run_of_two_commits_mark_every_figure(self):
        self.run_of(ONE, [8])
        text = self.section(self.run_of(OTHER, [8, 64]))
        self.assertIn("- (a) commit 1111111111, records: 4", text)
        self.assertIn("- (b) commit 2222222222 with uncommitted changes (abcd1234), records: 4", text)
        self.assertIn("| all_reduce 2 | **0.90** (a) | 1.40 (b) |", text)  # the cells
        self.assertIn("| all_reduce | 1.12 (a, b) | 1.12 (a, b) | 1.5 |", text)  # a mean of both
        self.assertIn("| shm | 1.10 (a) | 1.10 (b) |", text)  # of NCCL_FALCON=1
        self.assertIn("| 64 B | 2.0 (b) | 2.8 (b) |", text)  # over memcpy
        self.assertIn("| all_reduce 64 B, 2 ranks, tcp (b) | 2 µs | peer | 2.8 µs | 1.40 | 1.10 (b) | 2.0 |", text)
        self.assertIn("2 of 4 cells (50 %) are at least as fast as the best peer (a, b). Worst cell: all_reduce 8 B, 2 ranks, "
                      "shm, 0.90 of peer (a).", text)

    def test_of_two_commits_have_no_figure_that_belongs_to_none(self):
        self.run_of(ONE, [8])
        for line in self.section(self.run_of(OTHER, [8, 64])).splitlines():
            if line.startswith("|") and FIGURE.search(line):
                self.assertRegex(line, r"\([ab](, b)?\)", line)

    def test_of_cells_of_one_commit_and_falcons_cost_of_another_tell_them_apart(self):
        self.run_of(ONE, [8], kinds=["cell"])
        text = self.section(self.run_of(OTHER, [8]))
        self.assertIn("| all_reduce 8 B, 2 ranks, shm (a) | 2 µs | peer | 1.8 µs | 0.90 | 1.10 (b) | 2.0 |", text)

    def test_of_records_without_a_commit_say_that_it_is_unknown(self):
        self.run_of(ONE, [8])
        self.without_commit()
        self.assertIn("All figures are of an unknown commit", self.section(self.run_of(ONE, [])))
        text = self.section(self.run_of(ONE, [64]))
        self.assertIn("(a) an unknown commit", text)
        self.assertIn("| all_reduce 2 | **0.90** (a) | 1.40 (b) |", text)

    def test_say_where_cells_were_not_measured_as_often(self):
        records = self.run_of(ONE, [8])
        self.assertIn("Every cell was measured in 10 pairs", summary.origin(records))
        records = self.run_of(ONE, [64], pairs=20, first_ratio=1.01)
        self.assertIn("Not every cell was measured as often: 2 in 10 pairs, 2 in 20 pairs. 2 cells were measured a second time",
                      summary.origin(records))

    def test_picture_of_two_commits_is_marked(self):
        self.run_of(ONE, [8])
        self.assertNotIn("(a", chart.draw(self.run_of(ONE, [])))
        self.assertIn("shm (a, b);", chart.draw(self.run_of(OTHER, [64])))


class BetweenTheMarks(InAFolder):
    own = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "docs", "performance.md")

    def setUp(self):
        super().setUp()
        os.mkdir(os.path.join(self.root, "docs"))
        self.document = os.path.join(self.root, "docs", "performance.md")
        self.records = self.run_of(ONE, [8, 64])

    def written(self, text, cgroups=False):
        if text is not None:
            with open(self.document, "w") as file:
                file.write(text)
        document.write(self.root, self.records, MACHINE, "--quick", cgroups, "performance.svg")
        with open(self.document) as file:
            return file.read()

    def test_all_is_generated_and_what_was_typed_there_goes(self):
        generated = document.section(self.records, MACHINE, "--quick", "performance.svg") + "\n"
        for typed in ("", "by hand, inside\n", generated.replace("--quick", "--quick (but for some cells)")):
            self.assertEqual(self.written(AROUND.format(plain=typed, cgroups="")),
                             AROUND.format(plain=generated, cgroups=""))

    def test_writing_twice_changes_nothing(self):
        once = self.written(AROUND.format(plain="", cgroups=""))
        self.assertEqual(self.written(None), once)

    def test_the_other_results_and_the_words_around_stay(self):
        text = self.written(AROUND.format(plain="earlier results\n", cgroups=""), cgroups=True)
        self.assertIn("<!-- results: plain -->\nearlier results\n<!-- end of results: plain -->", text)
        for words in ("by hand, before", "by hand, between", "by hand, after"):
            self.assertEqual(text.count(words), 1)

    def test_a_figure_that_was_typed_or_changed_there_is_found(self):
        text = self.written(AROUND.format(plain="", cgroups="of before there were digests\n"))
        self.assertIs(document.altered(text, "plain"), False)
        self.assertIsNone(document.altered(text, "cgroups"))
        mark = "\n<!-- end of results: plain -->"
        for changed in (text.replace("0.90", "1.10", 1), text.replace("All figures", "By hand. All figures"),
                        text.replace(mark, "\nby hand" + mark)):
            self.assertNotEqual(changed, text)
            self.assertIs(document.altered(changed, "plain"), True)
        self.assertIs(document.altered(text.replace("by hand, before", "other words"), "plain"), False)

    def test_nothing_was_typed_between_the_documents_own_marks(self):
        with open(self.own) as file:
            text = file.read()
        self.assertIs(document.altered(text, "plain"), False)
        self.assertIsNot(document.altered(text, "cgroups"), True)  # of before there were digests, until it is measured again

    def test_a_document_without_its_marks_is_an_error_and_stays(self):
        with self.assertRaisesRegex(RuntimeError, "markers"):
            self.written("# Title\n")
        with open(self.document) as file:
            self.assertEqual(file.read(), "# Title\n")

    def test_the_documents_own_marks_are_there(self):
        with open(self.own) as file:
            text = file.read()
        for name in ("plain", "cgroups"):
            self.assertIn("generated", document.replaced(text, name, "generated"))


if __name__ == "__main__":
    unittest.main()
