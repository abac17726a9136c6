#!/usr/bin/env bash
# Prints which folder uses which, counted in includes, and fails when one uses a folder that does not stand below it.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

# Each folder with those that it may use, from the ground up.
below=''
declare -A allowed
for folder in kernels graph ops autograd models train files mpi pretrained onnx report apps learn; do
  allowed[$folder]=" $below "
  below+=" $folder"
done
allowed[models]=${allowed[models]/ autograd / }  # beside each other, both on ops
allowed[pretrained]=${allowed[pretrained]/ mpi / }
allowed[onnx]=" kernels graph ops autograd models train files "
allowed[report]=" kernels graph ops autograd models train "

failed=0
for folder in kernels graph ops autograd models train files mpi pretrained onnx report apps learn; do
  [[ -d $folder ]] || { echo "there is no folder $folder" && exit 1; }
  # "../graph/record.hpp" and <xgrad/graph/record.hpp> both name the folder graph; <xgrad/xgrad.hpp> reaches up to train.
  while read -r count used; do
    [[ $used ]] || continue
    if [[ $used == "$folder" ]]; then continue; fi
    if [[ ${allowed[$folder]} == *" $used "* ]]; then
      printf '%-9s -> %-9s %3d\n' "$folder" "$used" "$count"
    else
      printf '%-9s -> %-9s %3d  goes up\n' "$folder" "$used" "$count"
      grep -rn "include [\"<].*\b$used/" "$folder" | sed 's/^/    /'
      failed=1
    fi
  done < <(find "$folder" -name '*.[ch]pp' -exec cat {} + |
    sed -nE 's,^#include ("(\.\./)+|<xgrad/)(xgrad|ops|files|pretrained|onnx|report)\.hpp.*,\3/,; s,^xgrad/,#include "../train/,
      s,^(ops|files|pretrained|onnx|report)/,#include "../\1/,; s,^#include ("(\.\./)+|<xgrad/)([a-z]+)/.*,\3,p' | sort | uniq -c)
done
exit $failed
