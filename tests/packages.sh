#!/usr/bin/env bash
# tests/packages.sh DEBS BARE: checks what the shared libraries beside the folder DEBS export, installs the packages in it in a
# new root of Debian 12, and there compiles and runs the programs of tests/consumer. Needs root's rights and debootstrap; BARE
# keeps the bare root for the next time.
set -euo pipefail
debs=$(readlink -f "$1")
tests=$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")

"$tests/exports.sh" "$debs/.."
root=$("$tests/debian_root.sh" bookworm "$2")
trap 'rm -rf "$root"' EXIT
mkdir "$root/debs"
cp "$debs"/*.deb "$root/debs"
cp -r "$tests/consumer" "$root/consumer"

chroot "$root" env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root ${http_proxy:+http_proxy="$http_proxy"} \
  DEBIAN_FRONTEND=noninteractive bash -euxo pipefail -c '
  apt-get update
  apt-get install --yes --no-install-recommends /debs/*.deb
  packages=$(dpkg-query --show --showformat="\${Package}\n" "libxgrad*")
  test "$(tr -d "0-9." <<<"$packages" | sort | tr "\n" " ")" = "libxgrad libxgrad-dev libxgrad-mpi libxgrad-mpi-dev "
  dpkg-query --show $packages
  for package in $packages; do test -s "/usr/share/doc/$package/copyright"; done

  apt-get install --yes --no-install-recommends g++ cmake make pkg-config
  if objdump -p /usr/lib/*/libxgrad*.so | grep -E "RPATH|RUNPATH"; then exit 1; fi
  cmake -S /consumer -B /build -D CMAKE_BUILD_TYPE=Release -D with_mpi=ON
  cmake --build /build
  cd /build
  ./consumer
  ./files_consumer
  ./tokenizers_consumer
  ./pretrained_consumer
  ./generation_consumer
  ./retrieval_consumer
  ./onnx_consumer
  ./report_consumer
  ./mpi_consumer

  c++ -std=c++20 -O1 /consumer/main.cpp -o main $(pkg-config --cflags --libs xgrad)
  c++ -std=c++20 -O1 /consumer/files.cpp -o files $(pkg-config --cflags --libs xgrad-files)
  c++ -std=c++20 -O1 /consumer/mpi.cpp -o mpi $(pkg-config --cflags --libs xgrad-mpi)
  ./main
  ./files
  ./mpi
  # every inline function of the headers finds what it calls
  (cd /usr/include && printf "#include <%s>\n" xgrad/*.hpp) >all.cpp
  echo "int main() { return xgrad::default_generator().random32() == 0; }" >>all.cpp
  c++ -std=c++20 -O0 -fkeep-inline-functions all.cpp -o all \
    $(pkg-config --cflags --libs xgrad-files xgrad-tokenizers xgrad-pretrained xgrad-generation xgrad-retrieval xgrad-onnx xgrad-report xgrad-mpi)
  ./all
  apt-get remove --yes libxgrad-mpi-dev "libxgrad-mpi[0-9].*"
  if cmake -S /consumer -B /without -D with_mpi=ON; then exit 1; fi
  cmake -S /consumer -B /without -D with_mpi=OFF
  apt-get remove --yes libxgrad-dev "libxgrad[0-9].*"
  test ! -e /usr/include/xgrad
'
