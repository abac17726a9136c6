"""Prints, as a table in Markdown, what lines of `bench_encoder --json` measured, from files or stdin: other libraries'
wall times divided by xgrad's. With --picture FILE: draws the training steps, by matplotlib (python3-matplotlib). With
--check FILE: fails unless the table stands in that page."""

import argparse
import fileinput
import json
import pathlib
import sys

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("files", nargs="*", metavar="FILE", help="lines of bench_encoder --json")
parser.add_argument("--picture", metavar="FILE", help="an image, such as speed.svg")
parser.add_argument("--check", metavar="FILE", type=pathlib.Path, help="a page, such as benchmarks/README.md")
options = parser.parse_args()
with fileinput.input(options.files) as lines:
    measured = [json.loads(line) for line in lines]
if not measured:
    parser.error("there are no lines")

names = {"libtorch": "LibTorch", "libtorch-tuned": "LibTorch, tuned", "libtorch-autocast": "LibTorch, autocast",
         "onnxruntime": "ONNX Runtime"}
tasks = {"step": "training step", "fwd": "forward pass"}
configs = list(dict.fromkeys(line["config"] for line in measured))
runs = sorted({(line["precision"] != "highest", line["threads"]) for line in measured})


def key(line):
    return line["config"], line["precision"] != "highest", line["threads"]


by_key = {key(line): line for line in measured}
if len(by_key) < len(measured):
    parser.error("two lines have one config, number of threads and precision in use")


def found(config, run):
    """The line of this config, of the run with (products that are rounded, threads)."""
    return by_key.get((config, *run), {})


def ratio(config, run, peer, key):
    return found(config, run).get("peers", {}).get(peer, {}).get("ratios", {}).get(key)


def name_of(run):
    rounded, threads = run
    return f"{threads} thread{'s' if threads > 1 else ''}" + (", products of bfloat16" if rounded else "")


def rows():
    """Labels, and a cell for each config."""
    for run in runs:
        for task, what in tasks.items():
            milliseconds = [found(config, run).get(f"{task}_ms") for config in configs]
            yield f"{what}, {name_of(run)}: xgrad, ms", [number and f"{number:.3g}" for number in milliseconds]
            for peer, name in names.items():
                ratios = [ratio(config, run, peer, f"{task}_ms") for config in configs]
                yield f"{name} / xgrad", [number and f"{number:.3g}" for number in ratios]
    sizes = [ratio(config, runs[0], "libtorch", "rss_mb") for config in configs]
    yield "peak memory: LibTorch / xgrad", [number and f"{number:.3g}" for number in sizes]


def table():
    lines = [f"| | {' | '.join(configs)} |", f"|---|{'---|' * len(configs)}"]
    lines += [f"| {label} | {' | '.join(cell or '' for cell in cells)} |" for label, cells in rows() if any(cells)]
    return "\n".join(lines) + "\n"


def draw(path):
    import matplotlib
    from matplotlib import pyplot

    matplotlib.rcParams.update({"svg.hashsalt": "xgrad", "svg.fonttype": "none", "font.size": 9})
    bars = [(run, peer) for run in runs for peer in names if any(ratio(config, run, peer, "step_ms") for config in configs)]
    figure, axes = pyplot.subplots(figsize=(8, 0.8 + 0.2 * (len(bars) + 1) * len(configs)), layout="constrained")
    colors = pyplot.get_cmap("cividis").resampled(len(bars) + 1)
    for number, (run, peer) in enumerate(bars):
        lengths = [ratio(config, run, peer, "step_ms") or 1 for config in configs]
        places = [place * (len(bars) + 1) + number for place in range(len(configs))]
        drawn = axes.barh(places, [length - 1 for length in lengths], left=1, height=0.9, color=colors(number),
                          label=f"{names[peer]}, {name_of(run)}")
        axes.bar_label(drawn, [f" {length:.3g}" if length != 1 else "" for length in lengths])
    axes.set_yticks([place * (len(bars) + 1) + (len(bars) - 1) / 2 for place in range(len(configs))], configs)
    axes.invert_yaxis()
    axes.set_xscale("log")
    axes.set_xticks([1, 2, 5, 10, 20, 50, 100], [1, 2, 5, 10, 20, 50, 100])
    axes.minorticks_off()
    axes.axvline(1, color="gray", linewidth=1)
    axes.set_xlabel("times as long as xgrad for a training step")
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(loc="lower right")
    figure.savefig(path, metadata={"Date": None} if path.endswith(".svg") else None, dpi=150)


print(table(), end="")
if options.picture:
    draw(options.picture)
if options.check and table() not in options.check.read_text():
    sys.exit(f"{options.check} does not have this table")
