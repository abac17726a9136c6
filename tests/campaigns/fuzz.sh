#!/usr/bin/env bash
# fuzz.sh BUILD SECONDS [HARNESS...]: runs the built harnesses for so many seconds each, as many at once as there are
# processors. What they find stays in BUILD/findings, and the inputs that reach new code in BUILD/corpora. Exit code 1 on
# a finding.
set -euo pipefail
source=$(cd "$(dirname "${BASH_SOURCE[0]}")/../fuzz" && pwd)
root=$(cd "$source/../.." && pwd)
export source root build=$1 seconds=$2
shift 2
mkdir -p "$build/findings"

# The lines after the first of a harness may name folders of inputs to begin with.
run() {
  local name=$1 corpus=$build/corpora/$1 log folders=() folder
  mkdir -p "$corpus"
  log=$(mktemp)
  for folder in $(sed -n 's,^// seeds: ,,p' "$source/$name.cpp"); do folders+=("$root/$folder"); done
  if "$build/bin/fuzz_$name" -max_total_time="$seconds" -timeout=10 -rss_limit_mb=2048 -max_len=65536 \
    -print_final_stats=1 -artifact_prefix="$build/findings/$name-" -close_fd_mask=1 "$corpus" "${folders[@]}" \
    </dev/null >"$log" 2>&1; then
    printf 'ok      %-16s %9s runs, %5s inputs kept\n' "$name" \
      "$(sed -n 's/^stat::number_of_executed_units: *//p' "$log")" "$(find "$corpus" -type f | wc -l)"
    rm "$log"
  else
    tail -n 60 "$log"
    printf 'FAILED  %-16s the input is in %s\n' "$name" "$build/findings"
    rm "$log"
    return 1
  fi
}
export -f run

names=("$@")
if ((!${#names[@]})); then
  for file in "$source"/*.cpp; do names+=("$(basename "$file" .cpp)"); done
fi
for name in "${names[@]}"; do
  [[ -e $source/$name.cpp ]] || { echo "there is no harness '$name' in tests/fuzz" >&2 && exit 2; }
done
printf '%s\n' "${names[@]}" | xargs -P "$(getconf _NPROCESSORS_ONLN)" -I {} bash -c 'run {} || exit 1' || exit 1
