#!/usr/bin/env bash
# tests/exports.sh FOLDER: checks what the shared libraries in FOLDER export: no kernel, and of xgrad::detail exactly the names
# in cmake/exports.cmake.
set -euo pipefail
folder=$(readlink -f "$1")
cd "$(dirname "${BASH_SOURCE[0]}")/.."

symbols=$(nm --dynamic --defined-only "$folder"/libxgrad*.so | awk '$3 { print $3 }')
kernels=$(grep -E '^_Z(N|NK|T.N|ZN|ZNK|GV.*N)5xgrad7kernels' <<<"$symbols" || true)
[[ -z $kernels ]] || { echo 'kernels are exported:' && c++filt <<<"$kernels" && exit 1; }

# A mangled name has its length before it.
exported=$(sed -nE 's/^_Z(N|NK|T.N)5xgrad(4onnx|10generation|10pretrained|9retrieval|10tokenizers)?6detail([0-9]+)/\3 /p' <<<"$symbols" |
  awk '{ print substr($2, 1, $1) }' | sort -u)
listed=$(sed -n '/^set(exported_details/,/)/p' cmake/exports.cmake | sed 's/set(exported_details//; s/)//' | xargs -n 1 | sort -u)
diff <(echo "$listed") <(echo "$exported") ||
  { echo 'the names in cmake/exports.cmake (<) are not those that are exported (>)' && exit 1; }
echo "$(wc -l <<<"$exported") names of xgrad::detail and no kernel among $(wc -l <<<"$symbols") symbols"
