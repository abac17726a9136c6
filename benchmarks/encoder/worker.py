"""A library's side of bench_encoder in Python, as worker.hpp is in C++: a JSON line on stdin is answered by one on stdout."""

import json
import os
import sys
import time


def timed(request, call):
    """Wall time and CPU time of the process, in ms per call, of batches of calls, after so many ms of warming up."""
    calls = request["calls"]
    warm_until = time.perf_counter() + request["warm_up"] / 1e3
    while time.perf_counter() < warm_until:
        call()
    times = {"wall": [], "cpu": []}
    for _ in range(request["batches"]):
        wall_start, cpu_start = time.perf_counter(), time.process_time()
        for _ in range(calls):
            call()
        times["cpu"].append(1e3 * (time.process_time() - cpu_start) / calls)
        times["wall"].append(1e3 * (time.perf_counter() - wall_start) / calls)
    return times


def serve(start):
    """Answers requests until stdin ends. start(request) returns its answer, and by name the calls that can be timed, or asked
    for what they return."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what a library prints is no answer
    tasks = {}
    for line in sys.stdin:
        try:
            request = json.loads(line)
            task = request["do"]
            if task == "start":
                reply, tasks = start(request)
            elif task in tasks:
                reply = timed(request, tasks[task]) if "calls" in request else tasks[task]()
            else:
                raise ValueError(f"cannot do '{task}' now")
        except Exception as error:
            reply = {"error": f"{type(error).__name__}: {str(error).strip()}".splitlines()[0]}
        print(json.dumps(reply), file=answers, flush=True)
