#!/usr/bin/env python3
"""Draws small mistakes in the sources, mutants, plants them all in one build, and runs the tests with each: which survive?"""

import argparse
import collections
import concurrent.futures
import contextlib
import itertools
import json
import os
import random
import re
import resource
import shutil
import signal
import subprocess
import sys
import tarfile
import tempfile
import threading
import time
import venv
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
WORK = ROOT / "build" / "mutate"
SOURCE = WORK / "source"  # a copy with the mutants
HEADER = SOURCE / "mutant.hpp"
DATA = WORK / "data"
VENV = WORK / "venv"
EQUIVALENTS = Path(__file__).resolve().parent / "equivalent_mutants.txt"
PARSER = ("tree-sitter==0.26.1", "tree-sitter-cpp==0.23.4")  # packages of PyPI
MAX_UNREAD = 10  # functions that the parser does not understand
MAX_MEMORY = 16 << 30  # of a process: a mutant may ask for all
MAX_FILE_SIZE = 4 << 30
SETTINGS = {"build": (), "no-blas": ("-D", "XGRAD_BLAS=OFF")}  # of the two builds

if Path(sys.prefix) != VENV:  # goes on there, where the parser is
    if not any(VENV.glob("lib/*/site-packages/tree_sitter_cpp")):
        venv.create(VENV, with_pip=True)
        subprocess.run([VENV / "bin/python", "-m", "pip", "install", "--quiet", *PARSER], check=True)
    os.execv(VENV / "bin/python", [VENV / "bin/python", *sys.argv])
import mutants


@dataclass(frozen=True)
class Suite:
    """Tests that one process runs."""
    program: str
    arguments: tuple = ()  # of a program that compares results with those of files; without any, it has GoogleTest's tests
    filter: str = "*"
    environment: tuple = ()
    build: str = "build"

    def path(self):
        return WORK / self.build / self.program

    def __str__(self):
        return " ".join(map(str, (*(f"{name}={value}" for name, value in self.environment), Path(self.program).name,
                                  *(Path(argument).name for argument in self.arguments))))


FILES, TOKENIZERS, PRETRAINED, GENERATION, RETRIEVAL, ONNX, REPORT, MPI = (
    Suite(f"tests/{folder}/{folder}_tests") for folder in ("files", "tokenizers", "pretrained", "generation", "retrieval", "onnx", "report", "mpi"))
PROGRAMS = Suite("tests/apps/program_tests")
DECODERS = Suite("bin/decoder_parity", (SOURCE / "tests/data",))
ENCODERS = Suite("bin/pretrained_parity", (SOURCE / "tests/data/pretrained",))
RUNTIME_FILES = Suite("bin/onnx_interop", (SOURCE / "tests/data/onnx_runtime", "--at-least", "45"))
ONNX_NODES = Path("/usr/share/libonnx-testdata/data/node")  # Debian's libonnx-testdata
ONNX_CASES = [Suite("bin/onnx_cases", (ONNX_NODES, "--expected", SOURCE / "tests/onnx/cases.txt", "--at-least", "670",
                                       "--page", SOURCE / "docs/onnx_operators.md"))] if ONNX_NODES.exists() else []
CORE = [Suite("tests/xgrad_tests"), *(Suite("bin/conformance", (DATA / name,)) for name in ("conformance", "losses", "numerics")),
        FILES, Suite("bin/training_parity", (DATA / "training",)), PROGRAMS]
# By the beginning of a file's path: the tests of its folder first, then those of what uses it.
SUITES = {
    # without BLAS, which the library's own loops replace; and with OpenBLAS's kernels for another processor, called otherwise
    "kernels/gemm/plain_": [Suite("tests/core_tests", build="no-blas")],
    "kernels/lapack/plain_": [Suite("tests/core_tests", build="no-blas")],
    "kernels/gemm/": [*CORE, Suite("tests/xgrad_tests", filter="*ProductsHaveTheSameBits:GemmTest*",
                                   environment=(("OPENBLAS_CORETYPE", "Haswell"),))],
    "files/": [FILES, PROGRAMS],
    "tokenizers/": [TOKENIZERS, DECODERS, PRETRAINED],
    "pretrained/": [PRETRAINED, ENCODERS, DECODERS, GENERATION, ONNX, PROGRAMS],
    "generation/": [GENERATION, DECODERS, PROGRAMS],
    "retrieval/": [RETRIEVAL, PRETRAINED, PROGRAMS],
    "onnx/": [ONNX, RUNTIME_FILES, *ONNX_CASES, PROGRAMS],
    "report/": [REPORT, PROGRAMS],
    "mpi/": [Suite("tests/mpi/ranks_tests"), MPI],
    "learn/": [Suite("tests/learn/lesson_tests")],
    "apps/pretrained/": [PRETRAINED, PROGRAMS],
    "apps/onnx/": [ONNX, PROGRAMS],
    "apps/": [PROGRAMS, FILES, PRETRAINED, ONNX],
    "": CORE}


def suites_of(file):
    return next(suites for beginning, suites in SUITES.items() if file.startswith(beginning))


def git(*arguments):
    return subprocess.run(["git", "-C", ROOT, *arguments], check=True, stdout=subprocess.PIPE, text=True).stdout


def project_files():
    names = git("ls-files", "-z", "--cached", "--others", "--exclude-standard").split("\0")
    return [name for name in names if name and (ROOT / name).is_file()]


def library_folders():
    """The library's folders and their groups: the core and the components."""
    groups = dict(re.findall(r"^set\((core|component)_folders (.*)\)$", (ROOT / "cmake/folders.cmake").read_text(), re.MULTILINE))
    return {"core": groups["core"].split(), "components": groups["component"].split()}


def changed_lines(since):
    """The lines of each file that are not as in this commit."""
    lines, file = collections.defaultdict(set), None
    for line in git("diff", "--unified=0", "--no-prefix", since, "--", "*.cpp", "*.hpp").splitlines():
        if line.startswith("+++ "):
            file = line.removeprefix("+++ ")
        elif match := re.match(r"@@ -\S+ \+(\d+)(?:,(\d+))? @@", line):
            lines[file].update(range(int(match[1]), int(match[1]) + int(match[2] or 1)))
    return lines


def equivalents():
    """The keys of the mutants that no test can notice, and why."""
    lines = [line.split(maxsplit=1) for line in EQUIVALENTS.read_text().splitlines() if line and not line.startswith("#")]
    return dict(lines)


def all_mutants(files):
    return [mutant for file in files for mutant in mutants.mutants_of(file, (ROOT / file).read_bytes())]


def check(files):
    """Whether the parser understands the sources, and the equivalent mutants exist."""
    unread = [f"{file}:{line}" for file in files for line in mutants.unread_functions((ROOT / file).read_bytes())]
    outdated = equivalents().keys() - {mutant.key for mutant in all_mutants(files)}
    if len(unread) > MAX_UNREAD:
        print("\n".join(["functions that the parser does not understand:", *unread]))
    if outdated:
        print("\n".join([f"{EQUIVALENTS.name}: their functions have changed:", *sorted(outdated)]))
    sys.exit(1 if outdated or len(unread) > MAX_UNREAD else 0)


def write_sources(planted):
    """Writes only what changes, so that only that is built anew."""
    of_file = collections.defaultdict(list)
    for mutant in planted:
        of_file[mutant.file].append(mutant)
    wanted = {HEADER: mutants.HEADER.encode()}
    for name in project_files():
        contents = (ROOT / name).read_bytes()
        wanted[SOURCE / name] = mutants.plant(of_file[name], contents, HEADER) if name in of_file else contents
    for path in SOURCE.rglob("*"):
        if path.is_file() and path not in wanted:
            path.unlink()
    for path, contents in wanted.items():
        if path.exists() and path.read_bytes() == contents:
            continue
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(contents)
        if path != HEADER:
            shutil.copymode(ROOT / path.relative_to(SOURCE), path)


def run_build(suites):
    """Builds the programs of the suites; what the compiler says of those that do not build."""
    for name in dict.fromkeys(suite.build for suite in suites):
        folder = WORK / name
        print(f"building {folder} ...")
        if not (folder / "build.ninja").exists():
            components = ["-D", "XGRAD_COMPONENTS=all"] if shutil.which("mpicxx") else []
            # a mutant leaves variables unused, and numbers that the compiler knew are chosen at run time
            configured = subprocess.run(
                ["cmake", "-S", SOURCE, "-B", folder, "-G", "Ninja", "-D", "CMAKE_BUILD_TYPE=Release", "-D",
                 "CMAKE_CXX_FLAGS=-w -Wno-narrowing", "-D", "XGRAD_DEVELOPER_MODE=ON", "-D", "XGRAD_BUILD_BENCHMARKS=OFF",
                 "-D", "CMAKE_UNITY_BUILD=ON", *components, *SETTINGS[name]], stdout=subprocess.DEVNULL)
            if configured.returncode != 0:
                sys.exit("CMake could not configure the build")
        targets = sorted({Path(suite.program).name for suite in suites if suite.build == name})
        done = subprocess.run(["cmake", "--build", folder, "--target", *targets, "--", "-k", "0"], stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        if done.returncode != 0:
            return done.stdout
    return ""


def refused_by(output, planted):
    """The mutants at the lines of the compiler's errors; if there are none, those at any line that it speaks of."""
    for kind in (" error:", ""):
        refused = set()
        for path, line in set(re.findall(rf"([^\s:]+):(\d+):\d+:{kind}", output)):
            file = os.path.relpath(os.path.realpath(WORK / "build" / path), SOURCE)  # a compiler cache may make paths relative
            refused |= {mutant for mutant in planted if mutant.file == file and mutant.first_line <= int(line) <= mutant.last_line}
        if refused:
            return refused
    sys.exit(f"{output[-20000:]}\nthe build fails")


def build(planted):
    """Builds all programs with these mutants but for those that do not compile, and returns those that a program has."""
    suites = {suite for mutant in planted for suite in suites_of(mutant.file)}
    write_sources(planted)
    while output := run_build(suites):
        refused = refused_by(output, planted)
        print("\n".join(f"does not compile: {mutant.file}:{mutant.first_line}: {mutant.operator}" for mutant in refused))
        planted = [mutant for mutant in planted if mutant not in refused]
        write_sources(planted)
    programs = {path for suite in suites for path in (suite.path(), *(WORK / suite.build / "bin").glob("*")) if path.is_file()}
    ids = {int(id) for path in programs for id in mutants.SYMBOL.findall(path.read_bytes())}
    return [mutant for mutant in planted if mutant.id in ids]


def limits():
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_AS, (MAX_MEMORY, MAX_MEMORY))
    resource.setrlimit(resource.RLIMIT_FSIZE, (MAX_FILE_SIZE, MAX_FILE_SIZE))


def run(suite, id, tests, seconds=None, report=None):
    """Runs tests of the suite with this mutant, or with none, 0: the exit code, or None if it takes longer, and its output. Its
    folder is in another one, as a test or a mutant may look beside it."""
    with tempfile.TemporaryDirectory() as parent, open(Path(parent, "output"), "w+b") as output:
        folder, flags = Path(parent, "files"), Path(parent, "flags")
        folder.mkdir()
        flags.write_text(f"--gtest_filter={':'.join(tests)}\n--gtest_color=no\n"
                         + (f"--gtest_output=json:{report}\n" if report else "--gtest_fail_fast\n"))
        environment = dict(os.environ, TMPDIR=str(folder), **{mutants.SWITCH: str(id)}, **dict(suite.environment))
        process = subprocess.Popen([suite.path(), *(suite.arguments or [f"--gtest_flagfile={flags}"])], cwd=folder, env=environment,
                                   stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT, start_new_session=True,
                                   preexec_fn=limits)
        code = None
        with contextlib.suppress(subprocess.TimeoutExpired):
            code = process.wait(seconds)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)  # with the programs that a test has started
        process.wait()
        output.seek(0)
        return code, output.read().decode(errors="replace")


class Tests:
    """The tests of a suite, with the files that they are in."""

    def __init__(self, suite):
        self.suite, self.seconds, self.lock = suite, {}, threading.Lock()  # None for a test that fails without a mutant
        if suite.arguments:
            self.files = {str(suite): ""}
            return
        with tempfile.NamedTemporaryFile() as report:
            subprocess.run([suite.path(), "--gtest_list_tests", f"--gtest_output=json:{report.name}", f"--gtest_filter={suite.filter}"],
                           check=True, stdout=subprocess.DEVNULL)
            self.files = {name: test["file"] for name, test in named_tests(report.name)}

    def groups(self, file):
        """The tests in the order in which they are likely to notice a mutant of the file: those with its name, those of its
        folder, those of the folder above, and so on."""
        def distance(test):
            of_test = os.path.relpath(self.files[test] or SOURCE, SOURCE / "tests")
            if Path(file).stem.replace("_", "") in (test + of_test).lower().replace("_", ""):
                return 0
            return 1 + file.count("/") - len(Path(os.path.commonpath([file, of_test])).parts)

        return [list(tests) for _, tests in itertools.groupby(sorted(self.files, key=distance), key=distance)]

    def measure(self, tests):
        """The seconds of these tests, of those that pass without a mutant."""
        with self.lock, tempfile.NamedTemporaryFile() as report:
            if new := [test for test in tests if test not in self.seconds]:
                start = time.monotonic()
                code, output = run(self.suite, 0, new, report=report.name)
                self.seconds.update(dict.fromkeys(new))
                if self.suite.arguments and code == 0:
                    self.seconds[new[0]] = time.monotonic() - start
                elif not self.suite.arguments:
                    if not report.read(1):
                        sys.exit(f"{output[-20000:]}\n{self.suite} ends before its report without a mutant")
                    self.seconds.update((name, float(test["time"].removesuffix("s"))) for name, test in named_tests(report.name)
                                        if test["status"] == "RUN" and not test.get("failures"))
            return {test: self.seconds[test] for test in tests if self.seconds[test] is not None}

    def failure(self, mutant):
        """The first test that notices the mutant, and how; nothing if none does."""
        for tests in self.groups(mutant.file):
            seconds = self.measure(tests)
            for is_slow in (False, True):
                chosen = [test for test in seconds if (seconds[test] > 0.1) == is_slow]
                if not chosen:
                    continue
                code, output = run(self.suite, mutant.id, chosen, 20 + 10 * sum(seconds[test] for test in chosen))
                if code != 0:
                    failed = re.findall(r"^\[  FAILED  \] ([\w/]+\.[\w/]+)", output, re.MULTILINE)
                    begun = re.findall(r"^\[ RUN      \] ([\w/]+\.[\w/]+)", output, re.MULTILINE)
                    end = "hangs" if code is None else "crashes" if code < 0 else "fails"
                    return f"{(failed[:1] or begun[-1:] or [str(self.suite)])[0]} {end}"
        return ""


def named_tests(report):
    groups = json.loads(Path(report).read_text())["testsuites"]
    return [(f"{group['name']}.{test['name']}", test) for group in groups for test in group["testsuite"]]


def unpack_data():
    for name in ("conformance", "losses", "numerics", "training"):
        if not (DATA / name).exists():
            with tarfile.open(ROOT / "tests/data" / f"{name}.tar.xz") as archive:
                archive.extractall(DATA)


def survivors_of(chosen, jobs):
    """Those of the mutants that no test notices."""
    tests = {suite: Tests(suite) for suite in dict.fromkeys(itertools.chain(*(suites_of(mutant.file) for mutant in chosen)))}

    def killed_by(mutant):
        return next((failure for suite in suites_of(mutant.file) if (failure := tests[suite].failure(mutant))), "")

    survivors = []
    with concurrent.futures.ThreadPoolExecutor(jobs) as threads:
        running = {threads.submit(killed_by, mutant): mutant for mutant in chosen}
        for number, future in enumerate(concurrent.futures.as_completed(running), 1):
            mutant, failure = running[future], future.result()
            if not failure:
                survivors.append(mutant)
            print(f"[{number}/{len(chosen)}] {mutant.file}:{mutant.first_line}: {mutant.operator}: {failure or 'SURVIVES'}")
    if broken := [test for some in tests.values() for test, seconds in some.seconds.items() if seconds is None]:
        print(f"left out, as they fail without a mutant: {', '.join(broken)}")
    return sorted(survivors, key=lambda mutant: (mutant.file, mutant.begin))


def report(chosen, survivors):
    """Prints the survivors, and the score by folder; returns the percentage that was killed."""
    for mutant in survivors:
        print("\n" + mutant.diff((ROOT / mutant.file).read_bytes()))
    count, left = (collections.Counter(mutant.file.split("/")[0] for mutant in some) for some in (chosen, survivors))
    print(f"\n{'folder':12} mutants  killed")
    for folder in sorted(count):
        print(f"{folder:12} {count[folder]:7} {count[folder] - left[folder]:7}  {100 * (1 - left[folder] / count[folder]):5.1f} %")
    killed = 100 * (1 - len(survivors) / len(chosen))
    print(f"{'all':12} {len(chosen):7} {len(chosen) - len(survivors):7}  {killed:5.1f} %")
    return killed


def main():
    parser = argparse.ArgumentParser(prog="./run.sh mutate", description=__doc__)
    parser.add_argument("--seed", type=int, default=0, help="of the draw")
    parser.add_argument("--sample", metavar="N", type=int, default=100, help="number of mutants; 100 by default")
    parser.add_argument("--only", metavar="FOLDER", help="core, components, or the beginning of paths, such as files/ or models/em")
    parser.add_argument("--changed", metavar="SINCE", help="only lines that are not as in this commit")
    parser.add_argument("--at-least", metavar="PERCENT", type=float, default=95, help="fails if fewer are killed; 95 by default")
    parser.add_argument("--jobs", type=int, default=len(os.sched_getaffinity(0)), help="processes at once")
    parser.add_argument("--check", action="store_true", help="only whether the parser and the list of equivalent mutants fit the sources")
    options = parser.parse_args()

    sys.stdout.reconfigure(line_buffering=True)
    groups = library_folders()
    folders = [*itertools.chain(*groups.values()), "apps", "learn"]
    files = [name for name in project_files() if name.endswith((".cpp", ".hpp")) and name.split("/")[0] in folders]
    if options.check:
        check(files)
    if options.only:
        beginnings = tuple(f"{folder}/" for folder in groups.get(options.only, ())) or options.only
        files = [file for file in files if file.startswith(beginnings)]
    if options.changed:
        lines = changed_lines(options.changed)
        found = [mutant for mutant in all_mutants(file for file in files if file in lines)
                 if not lines[mutant.file].isdisjoint(range(mutant.first_line, mutant.last_line + 1))]
    else:
        found = all_mutants(files)
    known = equivalents()
    found = [mutant for mutant in found if mutant.key not in known]
    print(f"{len(found)} mutants to draw from")
    # more than wanted, as some do not compile, and some are in code that this build leaves out
    planted = list(itertools.islice(mutants.drawn(found, random.Random(options.seed)), options.sample + options.sample // 4 + 3))
    built = build(planted)
    chosen = built[:options.sample]
    if not chosen:
        parser.exit(0, "there is nothing to plant\n")
    unpack_data()
    print(f"running the tests with {len(chosen)} mutants ...")
    start = time.monotonic()
    killed = report(chosen, survivors_of(chosen, options.jobs))
    print(f"{time.monotonic() - start:.0f} s")
    sys.exit(0 if killed >= options.at_least else 1)


if __name__ == "__main__":
    main()
