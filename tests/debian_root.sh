#!/usr/bin/env bash
# tests/debian_root.sh RELEASE BARE: makes the folder BARE a bare root of a Debian release, such as trixie or forky, unless
# it is one already, and prints the path of a copy to work in. Needs root's rights, debootstrap and the mirror that apt uses
# here.
set -euo pipefail
release=$1 bare=$2

bootstrap() {
  # shellcheck source=/dev/null
  local here mirror
  here=$(. /etc/os-release && echo "$VERSION_CODENAME")
  mirror=$(apt-get indextargets --format '$(REPO_URI)' "Codename: $here" 'Component: main' | head -n 1)
  [[ $mirror ]] || { echo "apt has no index of $here" >&2 && exit 1; }
  rm -rf "$bare" && mkdir -p "$bare"
  local script=/usr/share/debootstrap/scripts/$release
  if [[ ! -e $script ]]; then script=/usr/share/debootstrap/scripts/sid; fi # a release that debootstrap does not know yet
  debootstrap --variant=minbase "$release" "$bare" "$mirror" "$script"
  {
    apt-config dump | grep '^Acquire::https*::' || true # such as a proxy
    [[ $release != forky ]] || echo 'Acquire::Check-Valid-Until "false";' # its mirror may be old
  } >"$bare/etc/apt/apt.conf.d/mirror"
  touch "$bare/.complete"
}

if [[ ! -e $bare/.complete || $(find "$bare/.complete" -mtime +30) ]]; then bootstrap >&2; fi
root=$(mktemp -d "$bare.XXXXXX")
cp -a "$bare/." "$root"
cp /etc/resolv.conf "$root/etc/resolv.conf"
readlink -f "$root"
