#!/usr/bin/env bash
# Prints how many instructions a training step of bench_encoder's toy takes, as valgrind counts them.
#   benchmarks/instructions.sh build/release
set -euo pipefail
encoder=${1:?the build directory}/benchmarks/bench_encoder_xgrad
size='{"vocab": 6, "seq": 8, "batch": 1, "d_model": 4, "heads": 2, "d_ff": 8, "layers": 1, "classes": 2, "dropout": 0}'

# All that the process does for so many steps.
instructions() {
  { echo "{\"do\": \"start\", \"threads\": 1, \"precision\": \"highest\", \"size\": $size}"
    echo "{\"do\": \"step\", \"calls\": $1, \"batches\": 1, \"warm_up\": 0}"; } |
    valgrind --tool=callgrind --callgrind-out-file=/dev/null "$encoder" 2>&1 >/dev/null | sed -n 's/.*Collected : //p'
}

few=$(instructions 200) many=$(instructions 1200)
echo "toy: $(((many - few) / 1000)) instructions a step"
