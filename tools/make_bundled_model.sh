#!/usr/bin/env bash
# Makes models/crest-tiny-moe-q4_k_m.gguf from its checkpoint: make_bundled_model.sh CHECKPOINT_FOLDER CALIBRATION_TEXT
set -euo pipefail
[ $# -eq 2 ] || { sed -n '2s/^# //p' "$0" >&2; exit 2; }
root=$(cd "$(dirname "$0")/.." && pwd)
crest=${CREST:-$root/build/release/src/cli/crest}
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
mkdir "$scratch/crest-tiny-moe"
cp -r "$1"/* "$scratch/crest-tiny-moe"
chmod -R u+w "$scratch"
cp "$root/models/tiny_chat_template.jinja" "$scratch/crest-tiny-moe/chat_template.jinja"
"$crest" convert "$scratch/crest-tiny-moe" -o "$scratch/f32.gguf" --type f32
"$crest" imatrix -m "$scratch/f32.gguf" -f "$2" -o "$scratch/imatrix.gguf" --chunks 60
"$crest" quantize "$scratch/f32.gguf" "$root/models/crest-tiny-moe-q4_k_m.gguf" Q4_K_M --imatrix "$scratch/imatrix.gguf"
