"""Prints, as a table in Markdown, what lines of `bench_encoder --json` measured, from files or stdin: other libraries'
wall times divided by xgrad's. With --brief: one thread, LibTorch and PyTorch alone; with --raw: every time instead. With
--picture FILE: draws the training steps, by matplotlib (python3-matplotlib). With --check FILE: fails unless the table
stands in that page."""

import argparse
import fileinput
import json
import pathlib
import sys

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("files", nargs="*", metavar="FILE", help="lines of bench_encoder --json")
form = parser.add_mutually_exclusive_group()
form.add_argument("--brief", action="store_true", help="one thread, LibTorch and PyTorch alone")
form.add_argument("--raw", action="store_true", help="a line for each library, with all of its times")
parser.add_argument("--picture", metavar="FILE", help="an image, such as encoder.svg")
parser.add_argument("--check", metavar="FILE", type=pathlib.Path, help="a page, such as docs/speed.md")
options = parser.parse_args()
with fileinput.input(options.files) as lines:
    measured = [json.loads(line) for line in lines if not line.startswith("#")]
if not measured:
    parser.error("there are no lines")

names = {"libtorch": "LibTorch", "libtorch-tuned": "LibTorch, tuned", "libtorch-autocast": "LibTorch, autocast",
         "pytorch": "PyTorch", "pytorch-compiled": "PyTorch, compiled", "pytorch-autocast": "PyTorch, autocast",
         "pytorch-compiled-autocast": "PyTorch, compiled, autocast", "onnxruntime": "ONNX Runtime",
         "onnxruntime-int8": "ONNX Runtime, int8"}
tasks = {"step": "training step", "fwd": "forward pass"}
configs = list(dict.fromkeys(line["config"] for line in measured))


def run_of(line):
    """With products that are rounded, with dropout, on so many threads."""
    return line["precision"] != "highest", line.get("dropout", 0), line["threads"]


runs = sorted({run_of(line) for line in measured})
by_key = {(line["config"], run_of(line)): line for line in measured}
if len(by_key) < len(measured):
    parser.error("two lines have one config, number of threads, precision in use and dropout")


def found(config, run):
    return by_key.get((config, run), {})


def ratio(config, run, peer, key):
    return found(config, run).get("peers", {}).get(peer, {}).get("ratios", {}).get(key)


def name_of(run):
    rounded, dropout, threads = run
    name = f"{threads} thread{'s' if threads > 1 else ''}"
    name += ", products of bfloat16" if rounded else ""
    return name + (f", dropout {dropout}" if dropout else "")


def short(number):
    """In three digits, and no power of ten; empty for none."""
    return "" if number is None else f"{number:.0f}" if number >= 100 else f"{number:.3g}"


def rows():
    """Labels, and a cell for each config."""
    for task, what in tasks.items():
        for run in runs:
            if run[1] and task == "fwd":  # of training steps alone
                continue
            if run == runs[0]:
                milliseconds = [found(config, run).get(f"{task}_ms") for config in configs]
                yield f"{what}, {name_of(run)}: xgrad, ms", [short(number) for number in milliseconds]
            for peer, name in names.items():
                ratios = [ratio(config, run, peer, f"{task}_ms") for config in configs]
                yield f"{what}, {name_of(run)}: {name} / xgrad", [short(number) for number in ratios]
    sizes = [ratio(config, runs[0], "libtorch", "rss_mb") for config in configs]
    yield "peak memory: LibTorch / xgrad", [short(number) for number in sizes]


def table_of(header, lines):
    lines = [header, ["---"] * len(header), *lines]
    return "".join(f"| {' | '.join(cells)} |\n" for cells in lines)


def table():
    return table_of(["", *configs], [[label, *cells] for label, cells in rows() if any(cells)])


def brief_table():
    def row(label, key, *peers):
        """Of the least ratio of some peers."""
        ratios = [[ratio(config, runs[0], peer, key) for peer in peers] for config in configs]
        return [label, *(short(min((one for one in some if one is not None), default=None)) for some in ratios)]

    lines = [row("training step, LibTorch", "step_ms", "libtorch"),
             row("training step, PyTorch eager or compiled", "step_ms", "pytorch", "pytorch-compiled"),
             row("forward pass, LibTorch", "fwd_ms", "libtorch"),
             row("forward pass, PyTorch eager or compiled", "fwd_ms", "pytorch", "pytorch-compiled"),
             row("peak memory, LibTorch", "rss_mb", "libtorch")]
    return table_of(["", *configs], [line for line in lines if any(line[1:])])


def raw_table():
    keys = ["ms", "min", "p10", "p90", "cpu", "gflops"]
    header = ["config", "run", "", "library", "median ms", "min", "10 %", "90 %", "CPU ms", "GFLOP/s", "peak MiB"]
    lines = []
    for config in configs:
        for run in runs:
            line = found(config, run)
            for task in tasks:
                libraries = {"xgrad": line, **line.get("peers", {})}
                lines += [[config, name_of(run), tasks[task], name,
                           *(f"{figures[f'{task}_{key}']:.4g}" for key in keys), f"{figures['rss_mb']:.0f}"]
                          for name, figures in libraries.items() if f"{task}_ms" in figures]
    return table_of(header, lines)


def draw(path):
    import matplotlib
    from matplotlib import pyplot

    matplotlib.rcParams.update({"svg.hashsalt": "xgrad", "svg.fonttype": "none", "font.size": 9})
    # LibTorch as it comes; with rounded products, in its own mixed precision.
    places = {(run, "libtorch-autocast" if run[0] else "libtorch"): [] for run in runs}
    middles, place = [], 0
    for config in configs:  # the bars that it has, and a gap
        first = place
        for bar, drawn in places.items():
            if (length := ratio(config, *bar, "step_ms")) is not None:
                drawn.append((place, length))
                place += 1
        middles.append((first + place - 1) / 2)
        place += 1
    bars = {bar: drawn for bar, drawn in places.items() if drawn}
    figure, axes = pyplot.subplots(figsize=(8, 0.8 + 0.2 * place), layout="constrained")
    colors = pyplot.get_cmap("cividis").resampled(len(bars) + 1)
    for number, ((run, peer), drawn) in enumerate(bars.items()):
        heights, lengths = zip(*drawn)
        boxes = axes.barh(heights, [length - 1 for length in lengths], left=1, height=0.9, color=colors(number),
                          label=f"{names[peer]}, {name_of(run)}")
        axes.bar_label(boxes, [f" {length:.3g}" for length in lengths])
    axes.set_yticks(middles, configs)
    axes.invert_yaxis()
    axes.set_xscale("log")
    least, largest = axes.get_xlim()
    ticks = [tick for tick in (0.5, 1, 2, 5, 10, 20, 50, 100, 200) if least <= tick <= largest]
    axes.set_xticks(ticks, ticks)
    axes.minorticks_off()
    axes.axvline(1, color="gray", linewidth=1)
    axes.set_xlabel("times as long as xgrad for a training step")
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(loc="lower right")
    figure.savefig(path, metadata={"Date": None} if path.endswith(".svg") else None, dpi=150)


printed = raw_table() if options.raw else brief_table() if options.brief else table()
print(printed, end="")
if options.picture:
    draw(options.picture)
if options.check and printed not in options.check.read_text():
    sys.exit(f"{options.check} does not have this table")
