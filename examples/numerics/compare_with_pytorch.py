"""Whether the programs in BIN print what their counterparts in this folder do; exits with 77 without PyTorch. With --time:
times each result of both in turns, and prints PyTorch's time divided by xgrad's."""

import argparse
import importlib.util
import pathlib
import statistics
import subprocess
import sys

if importlib.util.find_spec("torch") is None:
    print("this Python has no torch")
    sys.exit(77)

folder = pathlib.Path(__file__).parent
names = sorted(path.stem for path in folder.glob("*.cpp"))

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("bin", type=pathlib.Path, metavar="BIN", help="the folder of the programs, such as build/release/bin")
parser.add_argument("names", nargs="*", metavar="NAME", help="only these programs")
parser.add_argument("--time", action="store_true")
options = parser.parse_intermixed_args()
for name in options.names or names:
    if name not in names:
        parser.error(f"there is no program {name} among {', '.join(names)}")
    if not (options.bin / name).exists():
        parser.error(f"{options.bin / name} is not there: ./run.sh {name} builds it")
names = options.names or names


def lines(name, *arguments):
    """What the program and its counterpart print."""
    commands = [options.bin / name], [sys.executable, folder / f"{name}.py"]
    return [subprocess.run([*command, *arguments], check=True, capture_output=True, text=True).stdout.splitlines()
            for command in commands]


def compare():
    different = 0
    for name in names:
        ours, theirs = lines(name)
        different += ours != theirs
        if ours != theirs:
            print(f"{name} prints {ours}, its counterpart {theirs}")
    return different


def figures(line):
    """Microseconds and megabytes."""
    micros, megabytes = line.rsplit(": ", 1)[1].split(", ")
    return float(micros.split()[0]), float(megabytes.split()[0])


def measure(name):
    for what in (line.rsplit(": ", 1)[0] for line in lines(name)[0]):
        rounds = [[figures(side[0]) for side in lines(name, "--time", "--only", what)] for _ in range(3)]
        ours, theirs = zip(*rounds)
        ratio = statistics.median(torch_time[0] / time[0] for time, torch_time in zip(ours, theirs))
        medians = [statistics.median(column) for side in (ours, theirs) for column in zip(*side)]
        print(f"| {name} | {what} | {medians[0]:.4g} | {medians[2]:.4g} | {ratio:.2f} | {medians[1]:.3g} | {medians[3]:.3g} |",
              flush=True)


if not options.time:
    sys.exit(compare())
print("| program | result | xgrad us | PyTorch us | ratio | xgrad MB | PyTorch MB |\n| --- | --- | --- | --- | --- | --- | --- |")
for name in names:
    measure(name)
