#!/usr/bin/env bash
# Runs AMD's published gfx942 kernels on the simulator and compares them with references computed on the CPU.
#   tools/check_published_objects.sh DIR [SUITE…]
# DIR is a copy of github.com/ROCm/aiter or its folder hsa. Nothing of it is kept. SUITE: decode, attention,
# latent-attention, gemm, block-scale-gemm, fused-moe, paged-attention; all of them by default.
set -euo pipefail
if [[ $# -lt 1 || ! -d $1 ]]; then
  sed -n '2,5s/^# //p' "$0" >&2
  exit 2
fi
objects=$(cd "$1" && pwd)
shift
[[ -d $objects/hsa ]] && objects=$objects/hsa
root=$(cd "$(dirname "$0")/.." && pwd)
build=${BUILD_DIR:-$root/build/sim}
if [[ ! -f $build/build.ninja ]]; then
  cmake -S "$root/sim" -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=Release -DCMAKE_CXX_COMPILER="${CXX:-clang++-22}" >/dev/null
fi
cmake --build "$build" --target crest_sim_published >/dev/null
exec "$build/tests/published/crest_sim_published" "$objects" "$@"
