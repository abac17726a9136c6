"""Tests of mutants.py and mutate.py, by the Python of build/mutate/venv."""

import os
import random
import subprocess
import tempfile
import unittest
from pathlib import Path

import mutants
import mutate

SOURCE = b"""#include <algorithm>
#include <cstdio>

constexpr int twice(int x) { return x + x; }

XGRAD_KERNEL(void, scaled, (const float* x, float* y, int n), (x, y, n)) {
  XGRAD_INDEPENDENT
  for (int i = 0; i < n; ++i) y[i] = -x[i];
}

int power(int base, int exponent) {
  static_assert(sizeof(int) == 4);
  int result = 1;
  for (int i = 0; i < exponent; ++i) result *= base;  // i times
  return result;
}

int main() {
  if (power(2, 3) > 9 && true) return 1;
  std::printf("%d %d", std::max(power(3, 2),
                                5), 7 - 3);
}
"""
COMPILED = SOURCE.replace(b"XGRAD_KERNEL(void, scaled, (const float* x, float* y, int n), (x, y, n))",
                          b"void scaled(const float* x, float* y, int n)").replace(b"XGRAD_INDEPENDENT", b"")


def found(source=SOURCE):
    return mutants.mutants_of("a.cpp", source)


class MutantsTest(unittest.TestCase):
    def test_finds_mistakes_of_function_bodies_at_run_time(self):
        self.assertEqual([(mutant.first_line, mutant.operator, mutant.replacement) for mutant in found()], [
            (8, "constant changed", "1"), (8, "comparison exchanged", "i <= n"), (8, "bound off by one", "i + 1 < n"),
            (8, "statement dropped", ";"), (8, "sign dropped", "x[i]"),
            (13, "constant changed", "2"), (14, "constant changed", "1"), (14, "comparison exchanged", "i <= exponent"),
            (14, "bound off by one", "i + 1 < exponent"), (14, "statement dropped", ";"), (14, "= for *=", "result = base"),
            (19, "condition negated", "!(power(2, 3) > 9 && true)"), (19, "logic exchanged", "power(2, 3) > 9 || true"),
            (19, "comparison exchanged", "power(2, 3) >= 9"), (19, "arguments exchanged", "power(3, 2)"),
            (19, "constant changed", "3"), (19, "constant changed", "4"), (19, "constant changed", "10"),
            (19, "constant changed", "false"), (19, "constant changed", "2"), (20, "statement dropped", ";"),
            (20, "min and max exchanged", "std::min(power(3, 2),\n                                5)"),
            (20, "arguments exchanged", "power(2, 3)"), (20, "constant changed", "4"), (20, "constant changed", "3"),
            (21, "constant changed", "6"), (21, "term dropped", "7"), (21, "constant changed", "8"), (21, "constant changed", "4")])

    def test_arguments_are_exchanged_where_their_types_are_written_alike(self):
        body = b"g(a, b); g(b, c); g(c, d); g(d, e); g(std::move(a), b); g(p.size(), q.size()); g(x[0], x[1]); g(1, 1.0);"
        source = b"void f(const int& a, int b, long c) { const long d = 0; auto e = d; long* x = 0; " + body + b" }"
        self.assertEqual([mutant.replacement for mutant in found(source) if mutant.operator == "arguments exchanged"],
                         ["g(b, a)", "g(d, c)", "g(b, std::move(a))", "g(q.size(), p.size())", "g(x[1], x[0])"])

    def test_a_key_lives_as_long_as_the_function(self):
        keys = {mutant.key for mutant in found()}
        self.assertEqual(len(keys), len(found()))
        self.assertEqual({mutant.key for mutant in found(b"\n\n" + SOURCE.replace(b"  ", b"\t"))}, keys)
        changed = {mutant.key for mutant in found(SOURCE.replace(b"result = 1", b"result = 3"))}
        self.assertEqual(changed & keys, {mutant.key for mutant in found() if not 13 <= mutant.first_line <= 14})

    def test_a_draw_has_no_two_in_one_place(self):
        drawn = list(mutants.drawn(found(), random.Random(1)))
        self.assertEqual(drawn, list(mutants.drawn(found(), random.Random(1))))
        self.assertNotEqual(drawn, list(mutants.drawn(found(), random.Random(2))))
        ordered = sorted(drawn, key=lambda mutant: mutant.begin)
        self.assertTrue(all(one.end <= other.begin for one, other in zip(ordered, ordered[1:])))

    def test_planted_mutants_are_chosen_at_run_time(self):
        planted = [mutant for mutant in found(COMPILED) if mutant.first_line == 14 and mutant.operator == "statement dropped"
                   or mutant.first_line == 20 and mutant.operator == "min and max exchanged" or mutant.replacement == "7"]
        with tempfile.TemporaryDirectory() as folder:
            header, source, program = (Path(folder, name) for name in ("mutant.hpp", "a.cpp", "a"))
            header.write_text(mutants.HEADER)
            text = mutants.plant(planted, COMPILED, header)
            self.assertEqual(text.count(b"\n"), COMPILED.count(b"\n") + 2)
            source.write_bytes(text)
            subprocess.run([os.environ.get("CXX", "c++"), "-std=c++20", "-O2", source, "-o", program], check=True)
            self.assertEqual({int(id) for id in mutants.SYMBOL.findall(program.read_bytes())}, {mutant.id for mutant in planted})
            printed = [subprocess.run([program], env={mutants.SWITCH: str(id)}, stdout=subprocess.PIPE, text=True).stdout
                       for id in (0, *(mutant.id for mutant in planted))]
        self.assertEqual(printed, ["9 4", "5 4", "5 4", "9 7"])

    def test_a_diff_shows_the_lines(self):
        mutant = next(mutant for mutant in found() if mutant.replacement == "7")
        self.assertEqual(mutant.diff(SOURCE).splitlines()[-4:], [
            '   std::printf("%d %d", std::max(power(3, 2),', "-                                5), 7 - 3);",
            "+                                5), 7);", " }"])

    def test_functions_that_the_parser_does_not_understand_are_named(self):
        self.assertEqual(mutants.unread_functions(SOURCE), [])
        self.assertEqual(mutants.unread_functions(b"void f() {}\nvoid g() { a <=> <= b; }\n"), [2])

    def test_mutants_at_the_lines_of_errors_are_refused(self):
        planted = list(mutants.drawn(found(), random.Random(1)))
        file = mutate.SOURCE / "a.cpp"
        at = {line: {mutant for mutant in planted if mutant.first_line == line} for line in (8, 13, 21)}
        self.assertEqual(mutate.refused_by(f"{file}:8:5: error: no\n{file}:13:1: note: here\n/usr/b.hpp:21:1: error: no\n", planted), at[8])
        self.assertEqual(mutate.refused_by("../source/a.cpp:21:5: error: no\n", planted), at[21])
        self.assertEqual(mutate.refused_by(f"{file}:13:1:   required from here\n/usr/b.hpp:8:1: error: no\n", planted), at[13])
        with self.assertRaises(SystemExit):
            mutate.refused_by("/usr/b.hpp:8:1: error: no\n", planted)

    def test_tests_near_the_file_come_first(self):
        tests = mutate.Tests.__new__(mutate.Tests)
        files = {"A.far": "train/a_test.cpp", "B.near": "ops/linalg/b_test.cpp", "C.above": "ops/loss/c_test.cpp", "Of.SolveX": "d.cpp"}
        tests.files = {"whole": "", **{name: mutate.SOURCE / "tests" / file for name, file in files.items()}}
        self.assertEqual(tests.groups("ops/linalg/solve.cpp"), [["Of.SolveX"], ["B.near"], ["C.above"], ["whole", "A.far"]])


if __name__ == "__main__":
    unittest.main()
