#!/usr/bin/env bash
# Prints which folder uses which, counted in includes, and fails when one uses a folder that does not stand below it. --list:
# prints the folders of the library.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

# Each folder with those that it may use, from the ground up.
library=$(sed -nE 's/^set\((core|component)_folders (.*)\)$/\2/p' cmake/folders.cmake | tr '\n' ' ')
if [[ ${1:-} == --list ]]; then echo "$library" && exit; fi
folders="$library apps learn"
below=''
declare -A allowed
for folder in $folders; do
  allowed[$folder]=" $below "
  below+=" $folder"
done
allowed[models]=${allowed[models]/ autograd / }  # beside each other, both on ops
allowed[pretrained]=${allowed[pretrained]/ mpi / }
allowed[retrieval]="${allowed[pretrained]}pretrained "
core=${allowed[files]}
allowed[tokenizers]=" base "
allowed[generation]="${core}tokenizers "
allowed[onnx]="$core files "
allowed[report]=$core

# The first folder of each include's path; <xgrad/xgrad.hpp> reaches up to train.
used_by() {
  find "$1" -name node_modules -prune -o -name '*.[ch]pp' -print0 | xargs -0 awk -F '["<>]' '
    /^#include "/ { path = FILENAME "/../" $2 }
    /^#include <xgrad\// { path = $2; sub("^xgrad/", "", path) }
    /^#include ("|<xgrad\/)/ {
      while (sub("[^/.]+(\\.[^/]+)?/\\.\\./", "", path)) {}
      sub("(/|\\.hpp$).*", "", path)
      print path == "xgrad" ? "train" : path
    }' | sort | uniq -c
}

failed=0
for folder in $folders; do
  [[ -d $folder ]] || { echo "there is no folder $folder" && exit 1; }
  while read -r count used; do
    if [[ $used == "$folder" ]]; then continue; fi
    if [[ ${allowed[$folder]} == *" $used "* ]]; then
      printf '%-9s -> %-9s %3d\n' "$folder" "$used" "$count"
    else
      printf '%-9s -> %-9s %3d  goes up\n' "$folder" "$used" "$count"
      grep -rn "include [\"<].*\b$used/" "$folder" | sed 's/^/    /'
      failed=1
    fi
  done < <(used_by "$folder")
done
exit $failed
