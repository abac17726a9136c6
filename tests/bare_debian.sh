#!/usr/bin/env bash
# tests/bare_debian.sh RELEASE BARE [COMMAND...]: runs commands, each a line of a shell, in a clone of this repository, as root
# of a new root of a Debian release in which nothing is installed; without any, the two of README. Needs root's rights and
# debootstrap; BARE keeps the bare root.
set -euo pipefail
tests=$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")

commands=("${@:3}")
if ((${#commands[@]} == 0)); then
  mapfile -t commands < <(sed -n 's/^\$ //p' "$tests/../docs/transcripts/setup/two_commands.txt")
fi
root=$("$tests/debian_root.sh" "$1" "$2")
trap 'rm -rf "$root"' EXIT
git clone --quiet "$tests/.." "$root/xgrad"

# For node, where the network has an authority of its own.
authority=${NODE_EXTRA_CA_CERTS:-}
if [[ $authority ]]; then cp "$authority" "$root/authority.crt"; fi

# What is mounted is so in a name space of its own: it is gone at the end, however it ends. hwloc reads /sys.
unshare --mount --pid --fork --kill-child env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root \
  ${http_proxy:+http_proxy="$http_proxy"} ${authority:+NODE_EXTRA_CA_CERTS=/authority.crt} bash -euc '
  mount --bind "$1" "$1" # a mount point, so that what runs in it can do the same
  mount --bind /dev "$1/dev"
  mount --rbind /sys "$1/sys"
  mount -t proc proc "$1/proc"
  cd /
  exec chroot "$1" bash -euxc "cd /xgrad; $2"' bash "$root" "$(printf '%s\n' "${commands[@]}")"
