#!/usr/bin/env bash
# Runs bench_toy_encoder under node and natively in turns, on one processor, and prints the seconds of it that each takes. CORE
# names kernels of OpenBLAS other than those it chooses.
#   [CORE=Haswell] benchmarks/wasm.sh build/wasm build/release [build/no-blas...]
set -euo pipefail
shopt -s inherit_errexit
: "${2:?the build for WebAssembly, and at least one other}"
for build in "$@"; do
  if [[ ! -e $build/bin/bench_toy_encoder && ! -e $build/bin/bench_toy_encoder.js ]]; then
    echo "$build has no bench_toy_encoder: configure it with -D XGRAD_BUILD_BENCHMARKS=ON, and build it" >&2
    exit 2
  fi
done
export LC_ALL=C
unset OPENBLAS_CORETYPE
if [[ ${CORE:-} ]]; then export OPENBLAS_CORETYPE=$CORE; fi
rounds=9
exec 3>&2

# Seconds of the processor that a command takes, with its start.
seconds() {
  local TIMEFORMAT='%U %S' spent
  spent=$({ time taskset --cpu-list 0 "$@" >/dev/null 2>&3; } 2>&1)
  awk '{ print $1 + $2 }' <<<"$spent"
}

figures=$(
  for ((round = 0; round < rounds; ++round)); do
    for build in "$@"; do
      program=("$build/bin/bench_toy_encoder")
      # Emscripten 3.1.6 takes a node with fetch for a browser
      if [[ ! -e ${program[0]} ]]; then program=(node --no-experimental-fetch "${program[0]}.js"); fi
      spent=$(seconds "${program[@]}")
      echo "$build $spent"
    done
  done
)
sort --key=1,1 --key=2,2g <<<"$figures" | awk -v rounds=$rounds -v builds="$*" '
  ++count[$1] == (rounds + 1) / 2 { median[$1] = $2 }
  END {
    split(builds, build, " ")
    printf "%s: %.2f s, the median of %d\n", build[1], median[build[1]], rounds
    for (i = 2; i in build; ++i)
      printf "%s: %.2f s; WebAssembly takes %.2f times as long\n", build[i], median[build[i]], median[build[1]] / median[build[i]]
  }'
