#!/usr/bin/env bash
# tests/docs/refused.sh COMPILER FILE FLAG...: the compiler refuses each line of FILE that ends with "// error", warns of each
# that ends with "// warning", and takes the rest without a warning, which would be there for a conversion, too.
set -euo pipefail

compiler=("$1" -std=c++20 -fsyntax-only "${@:3}") file=$2
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

sed -E 's,.*// (error|warning)$,,' "$file" >"$folder/rest.cpp"
"${compiler[@]}" -Wall -Wextra -Wconversion -Wno-unused -Wno-unused-result -Werror "$folder/rest.cpp"

compiler+=(-ftemplate-backtrace-limit=0)
if [[ $("$1" --version) == *clang* ]]; then compiler+=(-ferror-limit=0); fi # it would stop after 20
said=$("${compiler[@]}" -w "$file" 2>&1) && { echo "$file compiles" && exit 1; }
sed -E 's,.*// error$,,' "$file" >"$folder/${file##*/}"
warned=$("${compiler[@]}" -Wunused-value -Wunused-result "$folder/${file##*/}" 2>&1) || { echo "$warned" && exit 1; }
count=0
while IFS=: read -r number line; do
  count=$((count + 1))
  if [[ $line == *error ]]; then text=$said; else text=$warned; fi
  grep -q "${file##*/}:$number:" <<<"$text" || { echo "$file:$number compiles: $line" && exit 1; }
done < <(grep -nE '// (error|warning)$' "$file")
echo "$count lines are refused"
((count > 0))
