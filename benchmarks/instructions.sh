#!/usr/bin/env bash
# Prints how many instructions a training step of bench_encoder's toy takes, recorded and captured, as valgrind counts them.
#   benchmarks/instructions.sh build/release
set -euo pipefail
encoder=${1:?the build directory}/benchmarks/bench_encoder_xgrad
size='{"vocab": 6, "seq": 8, "batch": 1, "d_model": 4, "heads": 2, "d_ff": 8, "layers": 1, "classes": 2, "dropout": 0}'

# All that the process does for so many steps.
instructions() {
  { echo "{\"do\": \"start\", \"threads\": 1, \"precision\": \"highest\", \"captured\": $1, \"size\": $size}"
    echo "{\"do\": \"step\", \"calls\": $2, \"batches\": 1, \"warm_up\": 0}"; } |
    valgrind --tool=callgrind --callgrind-out-file=/dev/null "$encoder" 2>&1 >/dev/null | sed -n 's/.*Collected : //p'
}

for captured in false true; do
  few=$(instructions $captured 200) many=$(instructions $captured 1200)
  [[ $captured == true ]] && name=captured || name=recorded
  echo "toy, $name: $(((many - few) / 1000)) instructions a step"
done
