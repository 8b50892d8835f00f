#!/usr/bin/env bash
# Installs what is missing to build Crest on Debian 12 (tried) or Ubuntu 24.04 (the same names; not tried).
#   tools/install_deps.sh run    what `make run` needs
#   tools/install_deps.sh test   also what `make test` needs: GoogleTest, and clang with LLVM for the simulator
set -euo pipefail

run_packages=(g++ cmake ninja-build pkg-config git libcli11-dev libfmt-dev libspdlog-dev nlohmann-json3-dev
  libsimdjson-dev libpcre2-dev libedit-dev)
test_packages=(libgtest-dev libbenchmark-dev python3 python3-venv)

have_package() { [ "$(dpkg-query -W -f '${Status}' "$1" 2>/dev/null)" = "install ok installed" ]; }

# The simulator takes LLVM 20 to 22; the distribution may replace one by the next.
newest_llvm() {
  local version
  for version in 22 21 20; do
    if have_package "llvm-$version-dev" || [ -n "$(apt-cache policy "llvm-$version-dev" 2>/dev/null | sed -n 's/.*Candidate: \([^(].*\)/\1/p')" ]; then
      echo "$version"
      return
    fi
  done
}

case "${1:-}" in
  run) wanted=("${run_packages[@]}") ;;
  test) wanted=("${run_packages[@]}" "${test_packages[@]}") ;;
  *) echo "usage: $0 run|test" >&2; exit 2 ;;
esac

if ! command -v apt-get >/dev/null; then
  echo "This is not a Debian or Ubuntu system. Install by hand: ${wanted[*]}$([ "$1" = test ] && echo ' and clang, lld, llvm (20 to 22)')" >&2
  exit 0
fi
as_root=()
if [ "$(id -u)" -ne 0 ]; then
  if command -v sudo >/dev/null; then as_root=(sudo); else as_root=(false); fi
fi

updated=no
update_once() {
  [ "$updated" = yes ] || "${as_root[@]}" apt-get update -q
  updated=yes
}

if [ "$1" = test ]; then
  version=$(newest_llvm)
  if [ -z "$version" ]; then update_once; version=$(newest_llvm); fi
  if [ -z "$version" ]; then
    echo "No LLVM 20, 21 or 22 in the package lists: the simulator cannot be built here." >&2
  else
    wanted+=("clang-$version" "lld-$version" "llvm-$version-dev" "libclang-rt-$version-dev" "clang-tools-$version")
  fi
fi

missing=()
for package in "${wanted[@]}"; do have_package "$package" || missing+=("$package"); done
[ ${#missing[@]} -gt 0 ] || exit 0

echo "Installing: ${missing[*]}" >&2
update_once
if ! DEBIAN_FRONTEND=noninteractive "${as_root[@]}" apt-get install -q -y --no-install-recommends "${missing[@]}"; then
  echo "Could not install: ${missing[*]}. Install them as root and try again." >&2
  exit 1
fi
