#!/usr/bin/env bash
# ./run.sh NAME [ARGS]: installs what is missing, builds the program NAME of this project and runs it.
# ./run.sh test [--all] [CTEST ARGS]: the same for the tests of the core; with --all for those of every component, program and page.
# ./run.sh docs: builds the documentation. ./run.sh learn [FILE]: writes the interactive lesson, learn.html by default.
# ./run.sh mutate [OPTIONS] and ./run.sh fuzz SECONDS [HARNESS...]: campaigns against the tests and the readers.
# ./run.sh: lists the names. ./run.sh --yes ...: installs without asking; where there is no terminal, it never asks.
# Its own messages go to stderr; the program's stdin, stdout and exit code are untouched.
set -euo pipefail

root=$(cd "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")" && pwd)
say() { printf 'run.sh: %s\n' "$*" >&2; }
die() { say "$@" && exit 1; }

type=${CMAKE_BUILD_TYPE:-Release} # as CMake reads this variable
[[ $type == @(Debug|Release|RelWithDebInfo|MinSizeRel) ]] ||
  die "CMAKE_BUILD_TYPE must be Debug, Release, RelWithDebInfo or MinSizeRel, got '$type'"
build=$root/build/${type,,}
if [[ -n ${CXX:-} ]]; then build+=-${CXX//[^[:alnum:].+-]/_}; fi # one build per compiler
settings=(-D "CMAKE_BUILD_TYPE=$type" -D XGRAD_DEVELOPER_MODE=ON)

# Of programs, one from every source file.
folders=(apps apps/{generation,onnx,pretrained} examples examples/{mpi,numerics,optimizers} docs/snippets
  benchmarks benchmarks/{mpi,onnx,pretrained,report,simgrid,tokenizer} tests/programs)

# Prints the folder of the program NAME.
folder_of() {
  local folder
  for folder in "${folders[@]}"; do
    [[ $1 != */* && -e $root/$folder/$1.cpp ]] && echo "$folder" && return
  done
  return 1
}

# The first line of a program's source says what it does: "// one line".
list_names() {
  local folder source
  for folder in "${folders[@]}"; do
    for source in "$root/$folder"/*.cpp; do
      [[ ! -e $source ]] || printf '  %-24s %s\n' "$(basename "$source" .cpp)" "$(sed -n '1s,^//* *,,p' "$source")"
    done
  done
  printf '  %-24s %s\n' test 'run the tests of the core, with --all those of every component, too' \
    docs 'build the documentation' learn 'write the interactive lesson, an HTML file in which the library trains' \
    mutate 'draw mistakes in the sources, which the tests have to notice' fuzz 'make up files for all readers, for a number of seconds each'
}

is_installed() { # any of the packages
  local statuses
  statuses=$(dpkg-query --show --showformat='${db:Status-Status}\n' "$@" 2>/dev/null) || true
  grep -qx installed <<<"$statuses"
}

# Prints "package: what it is for" for each that this name needs, or with `missing` for those that are not installed.
packages() {
  local groups=(all compiler "$name") package users unless reason user
  case $name in
    docs | learn) groups=("$name") ;;
    fuzz) groups=(all fuzz) ;;
    *) if [[ -n ${CXX:-} ]]; then groups=(all "$name"); fi ;;
  esac
  while read -r package users unless reason; do
    for user in "${groups[@]}"; do
      if [[ $package == '#' || ,$users, != *",$user,"* ]]; then continue; fi
      if [[ ${1:-} == missing ]] && { is_installed ${package//|/ } || { [[ $unless != - ]] && command -v "$unless" >/dev/null; }; }; then
        continue
      fi
      echo "${package%%|*}: $reason"
    done
  done <"$root/cmake/debian_packages.txt"
}

# Whether this is a Debian whose packages have the names and versions that are wanted: 12, 13 or the next release.
is_debian() (
  # shellcheck source=/dev/null
  source /etc/os-release 2>/dev/null && [[ ${ID:-} == debian && ${VERSION_ID:-testing} != @([1-9]|1[01]) ]] && command -v apt-get >/dev/null
)

# quietly COMMAND...: prints the output if the command fails.
quietly() {
  local output
  output=$("$@" </dev/null 2>&1) || { printf '%s\n' "$output" >&2 && return 1; }
}

install_packages() {
  local list names answer='' as_root=()
  list=$(packages missing)
  [[ $list ]] || return 0
  say 'this will be installed:'
  printf '  %s\n' "$list" >&2
  mapfile -t names < <(cut -d: -f1 <<<"$list")
  if ((EUID)); then as_root=(sudo); fi
  command -v "${as_root[@]:-true}" >/dev/null || die "neither root nor sudo: as root, run: apt-get install ${names[*]}"
  if [[ ! $yes && -t 0 && -t 2 ]]; then read -r -p 'run.sh: install? [Y/n] ' answer; fi
  [[ ${answer,,} == @(|y|yes) ]] || die "nothing was installed; to do it yourself: apt-get install ${names[*]}"
  quietly "${as_root[@]}" apt-get update || die 'apt-get failed'
  quietly "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install --yes --no-install-recommends "${names[@]}" || die 'apt-get failed'
}

# Ends with a message; where nothing is installed, says what is needed.
missing() {
  is_debian || { say 'needed, by the names of Debian, outside of which run.sh installs nothing:' && packages | sed 's/^/  /' >&2; }
  die "$@"
}

check_tools() {
  local tool tools=(cmake ninja "${CXX:-c++}")
  case $name in
    fuzz) tools=(cmake ninja clang++) ;;
    docs) tools=(doxygen sphinx-build) ;;
    learn) tools=(cmake ninja emcmake npm) ;;
    mutate) tools+=(git python3) ;;
  esac
  if is_debian; then install_packages; fi
  for tool in "${tools[@]}"; do
    command -v "${tool%% *}" >/dev/null || missing "there is no ${tool%% *}"
  done
}

# Configures the build unless it is as what is installed asks for.
configure() {
  local with_mpi=0 onednn=OFF unity=ON cache=$build/CMakeCache.txt
  if [[ $name != @(fuzz|learn) ]]; then
    if command -v mpicxx >/dev/null; then with_mpi=1 settings+=(-D XGRAD_COMPONENTS=all); fi
    if ${CXX:-c++} -E -x c++ -include dnnl.hpp /dev/null >/dev/null 2>&1; then onednn=ON; fi
    if grep -qsx 'CMAKE_UNITY_BUILD:[A-Z]*=OFF' "$cache"; then unity=OFF; fi # for someone who changes sources
    settings+=(-D "XGRAD_ONEDNN=$onednn" -D "CMAKE_UNITY_BUILD=$unity")
    if [[ -e $build/build.ninja ]] && grep -qxF "CMAKE_HOME_DIRECTORY:INTERNAL=$root" "$cache" &&
      [[ $(grep -cx 'XGRAD_COMPONENTS:[A-Z]*=all' "$cache") == "$with_mpi" ]] && grep -qx "XGRAD_ONEDNN:BOOL=$onednn" "$cache" &&
      { ! folder_of "$name" >/dev/null || grep -q "^build $name: phony " "$build/build.ninja"; }; then
      return # a program that needs a library is left out where that was missing
    fi
  elif [[ -e $build/build.ninja ]] && grep -qxF "CMAKE_HOME_DIRECTORY:INTERNAL=$root" "$cache"; then
    return
  fi
  say 'configuring ...'
  quietly cmake --fresh -S "$root" -B "$build" -G Ninja "${settings[@]}" ||
    { rm -f "$build/build.ninja" && missing 'CMake could not configure the build'; }
}

# Ninja's progress becomes one line, and on a terminal one more that moves; what the compiler says stays.
build() {
  cmake --build "$build" --target "$1" </dev/null 2>&1 | show_build "$1" || die "$1 does not build"
}

show_build() {
  local line begun='' clear=''
  if [[ -t 2 ]]; then clear=$'\r\033[K'; fi
  while IFS= read -r line; do # not by awk: Debian's reads ahead
    case $line in
      'ninja: no work to do.' | '-- '* | *'] Re-checking globbed directories...' | *'] Re-running CMake...') ;;
      '['*/*'] '*)
        [[ $begun ]] || { begun=yes && say "building $1 ..."; }
        [[ ! $clear ]] || printf '%s%.78s' "$clear" "$line" >&2
        ;;
      *) printf '%s%s\n' "$clear" "$line" >&2 ;;
    esac
  done
  [[ ! $begun ]] || printf '%s' "$clear" >&2
}

# Prints how many cases the unit tests had, which ctest runs in parts, and which of them were skipped.
run_tests() {
  local failed=0
  ctest --test-dir "$build" --output-on-failure --no-label-summary --parallel "$(getconf _NPROCESSORS_ONLN)" "$@" || failed=$?
  # a test that starts programs of tests prints their numbers before its own
  awk '/^skipped [^ ]+$/ && !skipped[$0]++ { print "\t" $0 }
    /^\[=+\] [0-9]+ tests? from .* ran\./ { of_part = $2 }
    /^[0-9]+\/[0-9]+ Testing: / { cases += of_part; of_part = 0 }
    END { print "\n" cases + of_part " cases of unit tests" }' "$build/Testing/Temporary/LastTest.log"
  return "$failed"
}

# Doxygen's and Sphinx's warnings are errors.
build_docs() {
  say 'building the documentation ...'
  mkdir -p "$root/build/docs"
  (cd "$root" && XGRAD_FOLDERS=$(tests/folders.sh --list) && export XGRAD_FOLDERS && doxygen docs/Doxyfile &&
    sphinx-build -q -W --keep-going -d build/docs/doctrees docs build/docs/html) >&2 || die 'the documentation does not build'
  say "it is at file://$root/build/docs/html/index.html"
}

prepare() { # at most one at a time
  mkdir -p "$root/build"
  (
    if command -v flock >/dev/null; then flock 9; fi
    check_tools
    local page=$root/report/page
    if [[ $1 == learn && ! $page/node_modules/.package-lock.json -nt $page/package-lock.json ]]; then
      quietly npm ci --prefix "$page" --ignore-scripts --no-audit --no-fund || die 'npm failed'
    fi
    case $1 in
      docs) build_docs ;;
      mutate) ;; # builds a copy
      *) configure && build "$1" ;;
    esac
  ) 9>"$root/build/.lock"
}

yes=''
[[ ${1:-} != --yes ]] || { yes=1 && shift; }
name=${1:-}
if [[ -z $name || $name == -h || $name == --help ]]; then
  echo 'usage: ./run.sh [--yes] NAME [ARGS], where NAME is one of'
  list_names && exit
fi
shift

case $name in
  test)
    tests=basic_tests labels=(--label-exclude extended)
    [[ ${1:-} != --all ]] || { tests=all_tests labels=() && shift; }
    [[ ${1:--} == -* ]] || die "usage: ./run.sh test [--all] [CTEST ARGS], such as -R $1 for the tests with $1 in their names"
    prepare "$tests"
    run_tests "${labels[@]}" "$@"
    ;;
  docs) prepare docs ;;
  learn)
    (($# <= 1)) || die 'usage: ./run.sh learn [FILE]'
    page=$(realpath -m -- "${1:-learn.html}") build=$root/build/learn settings=(--preset learn)
    prepare learn
    cp -- "$build/learn.html" "$page" || die "$page cannot be written"
    say "it is at file://$page; open it in any recent browser, it needs no network"
    ;;
  mutate)
    prepare mutate
    exec "$root/tests/campaigns/mutate.py" "$@"
    ;;
  fuzz)
    [[ ${1:-} =~ ^[1-9][0-9]*$ ]] || die 'usage: ./run.sh fuzz SECONDS [HARNESS...], the names of files in tests/fuzz'
    build=$root/build/fuzz settings=(--preset fuzz)
    prepare fuzzers
    exec "$root/tests/campaigns/fuzz.sh" "$build" "$@"
    ;;
  *)
    folder=$(folder_of "$name") || { say "there is no '$name'; the names are" && list_names >&2 && exit 2; }
    prepare "$name"
    if [[ $folder == benchmarks* ]]; then unset OPENBLAS_CORETYPE; fi # figures are for the kernels of this processor
    exec "$build/bin/$name" "$@"
    ;;
esac
