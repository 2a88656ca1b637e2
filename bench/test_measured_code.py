"""Which code is said to be measured: of a real working tree, clean, dirty, and where git cannot tell."""

import os
import subprocess
import tempfile
import unittest
import unittest.mock

import measured_code
from measured_code import MeasuredCode


class OfATree(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = folder.name
        outside = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
        environment = unittest.mock.patch.dict(os.environ, outside, clear=True)  # a hook's point at another repository
        environment.start()
        self.addCleanup(environment.stop)
        self.git("init", "--quiet")
        self.write("src/a.cc", "int a;\n")
        self.write("README.md", "words\n")
        self.commit()

    def git(self, *words):
        subprocess.run(["git", "-C", self.root, "-c", "user.name=n", "-c", "user.email=n@example.org", *words], check=True)

    def write(self, path, text):
        whole = os.path.join(self.root, path)
        os.makedirs(os.path.dirname(whole), exist_ok=True)
        with open(whole, "w") as file:
            file.write(text)

    def commit(self):
        self.git("add", "--all")
        self.git("commit", "--quiet", "--no-verify", "--message", "a commit")

    def now(self):
        return measured_code.of_tree(self.root)

    def test_a_clean_tree_is_its_commit(self):
        self.assertRegex(self.now().commit, "^[0-9a-f]{40}$")
        self.assertEqual(self.now().changes, "")
        self.assertIn(self.now().commit[:10], str(self.now()))

    def test_another_commit_is_other_code(self):
        first = self.now()
        self.write("src/a.cc", "int b;\n")
        self.commit()
        self.assertNotEqual(self.now(), first)
        self.assertEqual(self.now().changes, "")

    def test_a_changed_a_staged_and_a_new_source_make_the_tree_dirty_and_each_is_another_code(self):
        clean = self.now()
        seen = {clean}
        self.write("src/a.cc", "int b;\n")
        seen.add(self.now())
        self.write("src/a.cc", "int c;\n")
        self.git("add", "src/a.cc")
        seen.add(self.now())
        self.write("src/new.cc", "int d;\n")
        seen.add(self.now())
        self.write("src/new.cc", "int e;\n")
        seen.add(self.now())
        self.assertEqual(len(seen), 5)
        for code in seen - {clean}:
            self.assertEqual(code.commit, clean.commit)
            self.assertIn("uncommitted changes", str(code))

    def test_documents_change_no_figure(self):
        clean = self.now()
        self.write("README.md", "other words\n")
        self.assertEqual(self.now(), clean)

    def test_a_folder_without_git_is_unknown(self):
        with tempfile.TemporaryDirectory() as folder:
            self.assertEqual(measured_code.of_tree(folder), measured_code.UNKNOWN)
        self.assertIn("unknown", str(measured_code.UNKNOWN))


class Marks(unittest.TestCase):
    one, dirty, none = ({"commit": "1" * 40, "changes": ""}, {"commit": "1" * 40, "changes": "abcd1234"}, {})

    def test_are_not_there_where_all_is_of_one_code(self):
        marks = measured_code.Marks([self.one, self.one])
        self.assertEqual(marks.of(self.one), "")
        self.assertEqual(marks.legend(), "All figures are of commit 1111111111.")

    def test_tell_a_dirty_tree_and_a_record_without_commit_from_a_clean_one(self):
        marks = measured_code.Marks([self.one, self.dirty, self.none, self.one])
        self.assertEqual([marks.of(self.one), marks.of(self.dirty), marks.of(self.none)], [" (a)", " (b)", " (c)"])
        self.assertEqual(marks.of(self.none, self.one), " (a, c)")
        for words in ("(a) commit 1111111111, records: 2", "(b) commit 1111111111 with uncommitted changes (abcd1234), records: 1",
                      "(c) an unknown commit"):
            self.assertIn(words, marks.legend())

    def test_one_code_that_is_dirty_or_unknown_is_said_too(self):
        self.assertIn("uncommitted changes (abcd1234)", measured_code.Marks([self.dirty]).legend())
        self.assertIn("an unknown commit (the records name none", measured_code.Marks([self.none]).legend())

    def test_stay_apart_for_any_number_of_codes(self):
        records = [{"commit": f"{number:040x}"} for number in range(60)]
        marks = measured_code.Marks(records)
        self.assertEqual(len({marks.of(record) for record in records}), 60)


class Resuming(unittest.TestCase):
    now = MeasuredCode("2" * 40)

    def test_with_records_of_the_same_code_says_nothing(self):
        self.assertEqual(measured_code.resuming([], self.now), "")
        self.assertEqual(measured_code.resuming([measured_code.as_fields(self.now)], self.now), "")

    def test_with_records_of_other_dirty_or_unknown_code_names_both(self):
        for record in ({"commit": "1" * 40, "changes": ""}, {"commit": "2" * 40, "changes": "abcd1234"}, {}):
            text = measured_code.resuming([record], self.now)
            self.assertIn(f"1 of {measured_code.of_record(record)}", text)
            self.assertIn(f"this run measures {self.now}", text)

    def test_where_neither_is_known_does_not_take_them_for_the_same(self):
        self.assertIn("unknown", measured_code.resuming([{}], measured_code.UNKNOWN))


if __name__ == "__main__":
    unittest.main()
