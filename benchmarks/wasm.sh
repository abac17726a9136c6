#!/usr/bin/env bash
# Runs bench_toy_encoder under node and natively in turns, on one processor, and prints the seconds of it that each takes.
#   benchmarks/wasm.sh build/wasm build/release build/no-blas
set -euo pipefail
: "${2:?the build for WebAssembly, and at least one other}"
rounds=9

# Seconds of the processor that a command takes, with its start.
seconds() {
  local TIMEFORMAT='%U %S'
  { time taskset --cpu-list 0 "$@" >/dev/null 2>&1; } 2>&1 | awk '{ print $1 + $2 }'
}

for ((round = 0; round < rounds; ++round)); do
  for build in "$@"; do
    program=("$build/bin/bench_toy_encoder")
    if [[ -e ${program[0]}.js ]]; then program=(node --no-experimental-fetch "${program[0]}.js"); fi
    echo "$build $(seconds "${program[@]}")"
  done
done | sort --key=1,1 --key=2,2n | awk -v rounds=$rounds -v wasm="$1" '
  ++count[$1] == (rounds + 1) / 2 { median[$1] = $2 }
  END {
    printf "%s: %.2f s, the median of %d\n", wasm, median[wasm], rounds
    for (build in median) if (build != wasm) printf "%s: %.2f s, %.2f times less\n", build, median[build], median[wasm] / median[build]
  }'
