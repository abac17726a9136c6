#!/usr/bin/env bash
# tests/bare_debian.sh RELEASE BARE: runs the two commands of README in a clone of this repository, as root of a new root of a
# Debian release in which nothing is installed. Needs root's rights and debootstrap; BARE keeps the bare root.
set -euo pipefail
tests=$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")

commands=$(sed -n 's/^\$ //p' "$tests/../docs/transcripts/setup/two_commands.txt")
root=$("$tests/debian_root.sh" "$1" "$2")
trap 'rm -rf "$root"' EXIT
git clone --quiet "$tests/.." "$root/xgrad"

# /proc and /dev are mounted in a name space of their own: they are gone at the end, however it ends.
unshare --mount --pid --fork env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root \
  ${http_proxy:+http_proxy="$http_proxy"} bash -euc '
  mount --bind /dev "$1/dev"
  mount -t proc proc "$1/proc"
  cd /
  exec chroot "$1" bash -euxc "cd /xgrad; $2"' bash "$root" "$commands"
