#!/usr/bin/env bash
# docs/transcripts.sh check|write BUILD FILE...: runs the commands of transcripts, which are the lines that begin with
# "$ " (or "# $ ", a comment in drawings), and compares what they print with the lines below each, or writes it there.
# ./run.sh NAME means the program in BUILD/bin. Of the transcripts in training/, whose figures depend on the processor, all
# but the numbers and the order of lines is compared, and what models write, behind "  | ", is not.
# The commands in setup/ install, build and test: they run in a fresh clone with a home of its own, and have to succeed.
set -euo pipefail

how=$1 build=$(realpath "$2")
shift 2

# Numbers, and the shades that stand for them in a heat map, become #; blanks between are the width of both.
without_numbers() {
  if [[ $1 == */training/* ]]; then sed -E '/^  \| /d; s/ *[-+]?[0-9]+([.,][0-9]+)?( *(░░|▒▒|▓▓|██))?/ #/g' | sort; else cat; fi
}

# A folder for the commands of a transcript.
prepare() {
  if [[ $1 == */setup/* ]]; then
    git clone --quiet "$(dirname "${BASH_SOURCE[0]}")/.." "$2"
  else
    ln -s "$build" "$2/build"
    printf '#!/bin/sh\nprogram=$1\nshift\nexec "%s/bin/$program" "$@"\n' "$build" >"$2/run.sh"
    chmod +x "$2/run.sh"
  fi
}

# Runs a command of a transcript in a folder.
run() {
  cd "$2"
  if [[ $1 == */setup/* ]]; then
    HOME=$2/home bash -c "$3" </dev/null >log 2>&1 || (cat log && false) >&2
  else
    bash -c "$3" </dev/null 2>stderr || (cat stderr && false) >&2
  fi
}

# Prints the commands of the transcript FILE, each with its output.
replay() {
  local folder line
  folder=$(mktemp -d)
  prepare "$1" "$folder"
  while IFS= read -r line; do
    if [[ ! $line =~ ^('# ')?'$ '(.*) ]]; then continue; fi
    echo "$line"
    if ! (run "$1" "$folder" "${BASH_REMATCH[2]}"); then
      echo "$1: this command failed: $line" >&2
      rm -rf "$folder"
      return 1
    fi
  done <"$1"
  rm -rf "$folder"
}

failed=0
for file in "$@"; do
  if ! output=$(replay "$file"); then
    failed=1
  elif [[ $how == write ]]; then
    printf '%s\n' "$output" >"$file"
  elif ! diff --label "$file" --label 'what it prints now' -u <(without_numbers "$file" <"$file") \
    <(printf '%s\n' "$output" | without_numbers "$file"); then
    failed=1
  fi
done
exit $failed
