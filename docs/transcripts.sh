#!/usr/bin/env bash
# docs/transcripts.sh check|write BUILD FILE...: runs the commands of transcripts, which are the lines that begin with
# "$ ", and compares what they print with the lines below each, or writes it there. ./run.sh NAME means the program in
# BUILD/bin. Of the transcripts in training/, whose figures depend on the processor, all but the numbers is compared.
set -euo pipefail

how=$1 build=$(realpath "$2")
shift 2

# Numbers, and the shades that stand for them in a heat map, become #; blanks between are the width of both.
without_numbers() {
  if [[ $1 == */training/* ]]; then sed -E 's/ *[-+]?[0-9]+([.,][0-9]+)?( *(░░|▒▒|▓▓|██))?/ #/g'; else cat; fi
}

# Runs the commands of the transcript FILE in an empty folder and prints them, each with its output.
replay() {
  local folder line
  folder=$(mktemp -d)
  ln -s "$build" "$folder/build"
  printf '#!/bin/sh\nprogram=$1\nshift\nexec "%s/bin/$program" "$@"\n' "$build" >"$folder/run.sh"
  chmod +x "$folder/run.sh"
  while IFS= read -r line; do
    if [[ $line != '$ '* ]]; then continue; fi
    echo "$line"
    if ! (cd "$folder" && bash -c "${line#'$ '}" </dev/null 2>"$folder/stderr"); then
      cat "$folder/stderr" >&2
      echo "$1: this command failed: ${line#'$ '}" >&2
      rm -r "$folder"
      return 1
    fi
  done <"$1"
  rm -r "$folder"
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
