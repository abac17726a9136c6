#!/usr/bin/env bash
# tests/debian_root.sh RELEASE ROOT: makes the folder ROOT a bare root of a Debian release, unless it is one already. Needs
# root's rights, debootstrap and the mirror that apt uses here.
set -euo pipefail
release=$1 root=$2
[[ ! -e $root/.complete ]] || exit 0

# shellcheck source=/dev/null
here=$(. /etc/os-release && echo "$VERSION_CODENAME")
mirror=$(apt-get indextargets --format '$(REPO_URI)' "Codename: $here" 'Component: main' | head -n 1)
[[ $mirror ]] || { echo "apt has no index of $here" >&2 && exit 1; }

rm -rf "$root"
debootstrap --variant=minbase "$release" "$root" "$mirror"
apt-config dump | grep '^Acquire::https*::' >"$root/etc/apt/apt.conf.d/mirror" || true # such as a proxy
touch "$root/.complete"
