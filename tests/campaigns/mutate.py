#!/usr/bin/env python3
"""Plants the mistakes of mutants.txt, all in one build, or two, and runs the unit tests with each: which do they not notice?"""

import argparse
import collections
import concurrent.futures
import contextlib
import json
import os
import random
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import zlib
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
LIST = Path(__file__).resolve().parent / "mutants.txt"
WORK = ROOT / "build" / "mutate"
SOURCE = WORK / "source"  # a copy with the mistakes
NOTICED_BY = WORK / "noticed_by.json"  # the test that failed last time, which is tried first
SWITCH = "XGRAD_MISTAKE"
MOST_MEMORY = 16 << 30  # of a process: a mistake may ask for all
LARGEST_FILE = 4 << 30
PRODUCTS = ["*ProductsHaveTheSameBits", "GemmTest*"]
COMPARES_SOURCES = "DocsTest.BlocksAreTheLinesOfTheirSources"  # with the pages, which show them without mistakes
OTHER_PROCESSOR = {"OPENBLAS_CORETYPE": "Haswell"}  # whose kernels are called in another way
WITH_MPI = shutil.which("mpicxx") is not None
ONNX_CASES = Path("/usr/share/libonnx-testdata/data/node")  # Debian's libonnx-testdata
# What compares results with those of files is asked as a whole: programs with their arguments.
COMPARISONS = {"pretrained_parity": [SOURCE / "tests/data/pretrained"], "decoder_parity": [SOURCE / "tests/data"],
               "onnx_interop": [SOURCE / "tests/data/onnx_runtime", "--at-least", "45"],
               "onnx_cases": [ONNX_CASES, "--expected", SOURCE / "tests/onnx/cases.txt", "--at-least", "670",
                              "--page", SOURCE / "docs/onnx_operators.md"]}

HEADER = f"""#pragma once

#include <cstdlib>

// The key of the mistake that this process makes; 0: none.
inline const unsigned planted_mistake = [] {{
  const char* const key = std::getenv("{SWITCH}");
  return key ? static_cast<unsigned>(std::strtoul(key, nullptr, 10)) : 0;
}}();
"""


@dataclass(frozen=True)
class Build:
    folder: Path
    settings: tuple
    tests: tuple  # programs, of which one after the other is asked

    def make(self, programs):
        say(f"building {self.folder.name} ...")
        if not (self.folder / "build.ninja").exists():
            # a mistake makes variables and parameters unused: no warnings
            call(["cmake", "-S", SOURCE, "-B", self.folder, "-G", "Ninja", "-D", "CMAKE_BUILD_TYPE=Release",
                  "-D", "CMAKE_CXX_FLAGS=-w", "-D", "XGRAD_DEVELOPER_MODE=ON", "-D", "XGRAD_BUILD_BENCHMARKS=OFF", "-D", "XGRAD_UNITY_BUILD=ON",
                  "-D", f"XGRAD_BUILD_MPI={'ON' if WITH_MPI else 'OFF'}", *self.settings])
        call(["cmake", "--build", self.folder, "--target", *(program.name for program in programs)])


WITHOUT_BLAS = Build(WORK / "no-blas", ("-D", "XGRAD_BLAS=OFF"), (WORK / "no-blas" / "tests" / "core_tests",))


def with_blas(*programs):
    """Of a folder: its own tests first, then those of what uses it."""
    return Build(WORK / "build", (), tuple(WORK / "build" / program for program in programs))


FILES, TOKENIZERS, PRETRAINED, GENERATION, ONNX, REPORT, MPI = (
    f"tests/{folder}/{folder}_tests" for folder in ("files", "tokenizers", "pretrained", "generation", "onnx", "report", "mpi"))
PROGRAMS = "tests/apps/program_tests"
OF_CORE = with_blas("tests/xgrad_tests", FILES, PROGRAMS)
OF_FOLDERS = {"files": with_blas(FILES),
              "tokenizers": with_blas(TOKENIZERS, "bin/decoder_parity", PRETRAINED),
              "pretrained": with_blas(PRETRAINED, "bin/pretrained_parity", "bin/decoder_parity", GENERATION, ONNX, PROGRAMS),
              "generation": with_blas(GENERATION, "bin/decoder_parity", PROGRAMS),
              "onnx": with_blas(ONNX, "bin/onnx_interop", *(["bin/onnx_cases"] if ONNX_CASES.exists() else []), PROGRAMS),
              "report": with_blas(REPORT, PROGRAMS),
              "mpi": with_blas(MPI),
              "learn": with_blas("tests/learn/lesson_tests"),
              "apps/pretrained": with_blas(PRETRAINED, PROGRAMS), "apps/onnx": with_blas(ONNX, PROGRAMS),
              "apps/generation": with_blas(GENERATION, PROGRAMS, FILES, PRETRAINED),
              "apps": with_blas(PROGRAMS, FILES, PRETRAINED, ONNX), "examples": with_blas(PROGRAMS)}
IN_PLACE_OF_BLAS = {"kernels/gemm/plain_gemm.cpp", "kernels/lapack/plain_lapack.cpp"}  # which a build with BLAS leaves out


def is_statement(text):
    return re.search(r";\s*}?$", text)


@dataclass
class Mutant:
    number: int
    file: str
    before: str
    right: str
    wrong: str
    after: str
    line_in_list: int
    equivalent: str = ""  # the reason why no test can notice it
    line: int = 0

    def key(self):
        """A number that stays when the list changes, so that only what changes is built anew."""
        return zlib.crc32("@".join((self.file, self.before, self.right, self.wrong, self.after)).encode())

    def build(self):
        if self.file in IN_PLACE_OF_BLAS:
            return WITHOUT_BLAS
        return next((build for folder, build in OF_FOLDERS.items() if self.file.startswith(folder + "/")), OF_CORE)

    def planted(self, right):
        """An expression becomes a choice of two, statements that of an if; `right` may have other mistakes."""
        if is_statement(self.right):
            return f"{{ if (planted_mistake == {self.key()}U) {{ {self.wrong} }} else {{ {right} }} }}"
        return f"(planted_mistake == {self.key()}U ? ({self.wrong}) : ({right}))"

    def __str__(self):
        return f"{self.number}: {self.file}:{self.line}: '{self.right}' as '{self.wrong}'"


def read_list():
    mutants, file = [], None
    for number, line in enumerate(LIST.read_text().splitlines(), 1):
        text = line.strip()
        if not text or text.startswith("#"):
            continue
        if not line.startswith(" "):
            file = text
        elif text.startswith("equivalent: "):
            mutants[-1].equivalent = text.removeprefix("equivalent: ")
        else:
            parts = text.split("@")
            if len(parts) != 4 or not parts[1]:
                sys.exit(f"{LIST}:{number}: expected text with one '@right@wrong@', got '{text}'")
            if not parts[2].strip() and not is_statement(parts[1]):
                sys.exit(f"{LIST}:{number}: an expression becomes another expression, got none for '{parts[1]}'")
            if is_statement(parts[1]) and re.match(r"(?!(return|throw)\b)(const )?[\w:<>]+ \w+\s*[;({=]", parts[1]):
                sys.exit(f"{LIST}:{number}: what is declared must live on, got '{parts[1]}'")
            if (parts[0].rstrip().endswith((".", "->", "::")) or parts[0].startswith("constexpr ")
                    or not re.search(r"\w|\"|'|{}", parts[1])):
                sys.exit(f"{LIST}:{number}: what is chosen at run time must be a whole expression, got '{parts[1]}'")
            mutants.append(Mutant(len(mutants) + 1, file, *parts, line_in_list=number))
    if len({mutant.key() for mutant in mutants}) < len(mutants):
        sys.exit(f"{LIST}: every mistake must be there once")
    return mutants


def pattern(text):
    """Any white space matches any other, so that a line may be broken anew."""
    return "".join(r"\s+" if part.isspace() else re.escape(part) for part in re.split(r"(\s+)", text))


def find(mutant, text):
    """Where the right text is in its file."""
    whole = f"{pattern(mutant.before)}\\s*({pattern(mutant.right)})\\s*{pattern(mutant.after)}"
    found = [match for match in re.finditer(whole, text)
             if not re.match(r"\w\w", text[match.start() - 1:match.start() + 1])
             and not re.match(r"\w\w", text[match.end() - 1:match.end() + 1])]  # whole words
    if len(found) != 1:
        sys.exit(f"{LIST}:{mutant.line_in_list}: must occur once in {mutant.file}, occurs {len(found)} times: "
                 f"{mutant.before}{mutant.right}{mutant.after}")
    mutant.line = text.count("\n", 0, found[0].start(1)) + 1
    return found[0].span(1)


def plant(mutants, file, text):
    """The text of the file with all of its mistakes."""
    places = {}
    for mutant in mutants:
        if mutant.file == file:
            places.setdefault(find(mutant, text), []).append(mutant)
    ordered = sorted(places)
    for one, other in zip(ordered, ordered[1:]):
        if one[1] > other[0]:
            lines = [places[place][0].line_in_list for place in (one, other)]
            sys.exit(f"{LIST}: the right texts of lines {lines[0]} and {lines[1]} overlap and are not the same")
    for begin, end in reversed(ordered):
        planted = text[begin:end]
        for mutant in places[begin, end]:
            planted = mutant.planted(planted)
        text = text[:begin] + planted + text[end:]
    return f'#include <{SOURCE}/planted_mistake.hpp>\n#line 1\n' + text  # in quotes, it would be a header of the project


def source(file):
    if not (ROOT / file).is_file():
        sys.exit(f"{LIST}: there is no {file}")
    return (ROOT / file).read_bytes()


def copy_sources(mutants):
    """Writes only what changes, so that only that is built anew."""
    files = {mutant.file for mutant in mutants}
    wanted = {"planted_mistake.hpp": HEADER.encode()}
    for folder, folders, names in os.walk(ROOT):
        if Path(folder) == ROOT:
            folders[:] = [name for name in folders if name not in ("build", ".git")]
        for name in names:
            path = Path(folder, name)
            file, contents = str(path.relative_to(ROOT)), path.read_bytes()
            wanted[file] = plant(mutants, file, contents.decode()).encode() if file in files else contents
    for file in files:
        source(file)
    for path in SOURCE.rglob("*"):
        if path.is_file() and str(path.relative_to(SOURCE)) not in wanted:
            path.unlink()
    for name, contents in wanted.items():
        path = SOURCE / name
        if path.exists() and path.read_bytes() == contents:
            continue
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(contents)
        if (ROOT / name).is_file():
            shutil.copymode(ROOT / name, path)


def call(command):
    done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode != 0:
        sys.exit(f"{done.stdout[-20000:]}\nfailed: {' '.join(map(str, command))}")


def say(text):
    print(text, flush=True)


def limits():
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_AS, (MOST_MEMORY, MOST_MEMORY))
    resource.setrlimit(resource.RLIMIT_FSIZE, (LARGEST_FILE, LARGEST_FILE))


@contextlib.contextmanager
def folder_of_its_own():
    """For the files of tests, in another folder, as a test or a mistake may look beside it."""
    with tempfile.TemporaryDirectory() as parent:
        folder = Path(parent) / "files"
        folder.mkdir()
        yield folder


def run_tests(program, key, tests, seconds, environment=()):
    """Runs these tests of the program with the mistake; the name of the test that fails, crashes or hangs, or nothing."""
    with folder_of_its_own() as folder, open(folder.parent / "output", "w+b") as output:
        flags = folder.parent / "flags"
        flags.write_text("--gtest_filter=" + ":".join(tests) + "\n")
        arguments = COMPARISONS.get(program.name, [f"--gtest_flagfile={flags}", "--gtest_fail_fast", "--gtest_color=no"])
        environment = dict(os.environ, TMPDIR=str(folder), **{SWITCH: str(key)}, **dict(environment))
        process = subprocess.Popen(
            [program, *arguments], cwd=folder, env=environment, stdin=subprocess.DEVNULL, stdout=output,
            stderr=subprocess.STDOUT, start_new_session=True, preexec_fn=limits)
        end = ""
        try:
            if process.wait(seconds) != 0:
                end = "fails"
        except subprocess.TimeoutExpired:
            end = "hangs"
        try:
            os.killpg(process.pid, signal.SIGKILL)  # with the programs that a test has started
        except ProcessLookupError:
            pass
        process.wait()
        if not end:
            return "", ""
        if program.name in COMPARISONS:
            return program.name, end
        output.seek(0)
        text = output.read().decode(errors="replace")
        failed = re.findall(r"^\[  FAILED  \] ([\w/]+\.[\w/]+)", text, re.MULTILINE)
        if failed:
            return failed[0], end
        begun = re.findall(r"^\[ RUN      \] ([\w/]+\.[\w/]+)", text, re.MULTILINE)
        return (begun[-1] if begun else "before the first test"), "hangs" if end == "hangs" else "crashes"


def run_without_mistake(program):
    """The seconds of each test of the program, all of which must pass."""
    say(f"running {program.name} without a mistake ...")
    report, start = WORK / "tests.json", time.monotonic()
    arguments = COMPARISONS.get(
        program.name, [f"--gtest_output=json:{report}", f"--gtest_filter=-{COMPARES_SOURCES}", "--gtest_brief=1"])
    with folder_of_its_own() as folder:
        done = subprocess.run([program, *arguments], cwd=folder, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, preexec_fn=limits,
                              env=dict(os.environ, TMPDIR=str(folder), **{SWITCH: "0"}))
    if done.returncode != 0:
        sys.exit(f"{done.stdout[-20000:]}\nthe tests fail without a mistake")
    if program.name in COMPARISONS:
        return {program.name: time.monotonic() - start}
    suites = json.loads(report.read_text())["testsuites"]
    return {f"{suite['name']}.{test['name']}": float(test["time"].removesuffix("s"))
            for suite in suites for test in suite["testsuite"] if test["status"] == "RUN"}


def notice(mutant, seconds_of, likely, near, with_other_processor):
    """The test that notices the mistake, and how: of each program the likely one first, then those that noticed others in the
    folder, then fast ones with the file's name, then all others; then products with other kernels of BLAS, where these pass
    without a mistake."""
    programs = mutant.build().tests
    for program in sorted(programs, key=lambda program: likely not in seconds_of[program]):
        seconds = seconds_of[program]
        fast = [test for test, time_taken in seconds.items() if time_taken < 0.1]
        name = Path(mutant.file).stem.replace("_", "")
        named = [test for test in fast if name in test.replace("_", "").lower()]
        # list(): `near` grows meanwhile
        groups = [[likely] if likely in seconds else [], [test for test in list(near) if test in seconds], named, fast,
                  [test for test in seconds if test not in set(fast)]]
        for group in groups:
            if not group:
                continue
            test, end = run_tests(program, mutant.key(), group, 60 + 5 * sum(seconds[test] for test in group))
            if test:
                return test, end
    if programs[0] not in with_other_processor:
        return "", ""
    return run_tests(programs[0], mutant.key(), PRODUCTS, 300, OTHER_PROCESSOR)


def main():
    parser = argparse.ArgumentParser(prog="./run.sh mutate", description=__doc__)
    parser.add_argument("numbers", metavar="NUMBER", type=int, nargs="*", help="of mistakes in the list; all if none is given")
    parser.add_argument("--only", metavar="PREFIX", default="", help="of the names of the files, such as files/ or models/em")
    parser.add_argument("--sample", metavar="COUNT", type=int, help="so many of them, drawn at random")
    parser.add_argument("--seed", type=int, default=0, help="of the draw")
    parser.add_argument("--jobs", type=int, default=len(os.sched_getaffinity(0)), help="processes at once")
    parser.add_argument("--check", action="store_true", help="only whether the list fits the sources")
    options = parser.parse_args()

    mutants = read_list()
    if options.check:
        for file in dict.fromkeys(mutant.file for mutant in mutants):
            plant(mutants, file, source(file).decode())
        return
    for number in options.numbers:
        if not 0 < number <= len(mutants):
            parser.error(f"the numbers are 1 to {len(mutants)}, got {number}")
    chosen = [mutant for mutant in mutants
              if mutant.file.startswith(options.only) and (not options.numbers or mutant.number in options.numbers)]
    if not chosen:
        parser.error(f"there is no mistake in files that begin with '{options.only}'")
    if options.sample is not None:
        chosen = random.Random(options.seed).sample(chosen, min(options.sample, len(chosen)))
    WORK.mkdir(parents=True, exist_ok=True)
    copy_sources(mutants)
    builds = dict.fromkeys(mutant.build() for mutant in chosen)
    for folder, build in {build.folder: build for build in builds}.items():
        build.make(dict.fromkeys(program for other in builds if other.folder == folder for program in other.tests))
    seconds_of = {program: run_without_mistake(program) for program in dict.fromkeys(p for build in builds for p in build.tests)}
    with_other_processor = set()
    if OF_CORE in builds:
        if run_tests(OF_CORE.tests[0], "0", PRODUCTS, 300, OTHER_PROCESSOR)[0]:
            say(f"left out, as they fail without a mistake: the products with {OTHER_PROCESSOR}")
        else:
            with_other_processor.add(OF_CORE.tests[0])

    noticed_by = json.loads(NOTICED_BY.read_text()) if NOTICED_BY.exists() else {}
    noticed_in = collections.defaultdict(set)  # folders
    for mutant in mutants:
        if str(mutant.key()) in noticed_by:
            noticed_in[Path(mutant.file).parent].add(noticed_by[str(mutant.key())])
    survivors, start = [], time.monotonic()
    say(f"running the tests with {len(chosen)} mistakes ...")
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as threads:
        running = {
            threads.submit(notice, mutant, seconds_of, noticed_by.get(str(mutant.key())),
                           noticed_in[Path(mutant.file).parent], with_other_processor): mutant
            for mutant in chosen}
        for done, future in enumerate(concurrent.futures.as_completed(running), 1):
            mutant, (test, end) = running[future], future.result()
            if test:
                noticed_by[str(mutant.key())] = test
                noticed_in[Path(mutant.file).parent].add(test)
            else:
                survivors.append(mutant)
            NOTICED_BY.write_text(json.dumps(noticed_by, indent=0))
            say(f"[{done}/{len(chosen)}] {mutant}: {test + ' ' + end if test else 'NOT NOTICED'}")

    survivors.sort(key=lambda mutant: mutant.number)
    unexpected = [mutant for mutant in survivors if not mutant.equivalent]
    marked_wrongly = [mutant for mutant in chosen if mutant.equivalent and mutant not in survivors]
    for mutant in survivors:
        if mutant.equivalent:
            say(f"equivalent: {mutant}: {mutant.equivalent}")
    for mutant in marked_wrongly:
        say(f"noticed, though the list calls it equivalent: {mutant}")
    for mutant in unexpected:
        say(f"not noticed: {mutant}")
    count = len(chosen) - sum(1 for mutant in chosen if mutant.equivalent)
    noticed = count - len(unexpected)
    say(f"noticed {noticed} of {count} ({100 * noticed / max(count, 1):.1f} %), and {len(chosen) - count} that are equivalent "
        f"left out, in {time.monotonic() - start:.0f} s")
    sys.exit(1 if unexpected or marked_wrongly else 0)


if __name__ == "__main__":
    main()
