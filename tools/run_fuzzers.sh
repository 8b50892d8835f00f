#!/usr/bin/env bash
# Runs every fuzzer of a build for some seconds each, from the seed corpus: run_fuzzers.sh BUILD_FOLDER SECONDS
set -euo pipefail
build=$1
seconds=$2
here=$(cd "$(dirname "$0")/.." && pwd)
failed=0
for fuzzer in "$build"/tests/fuzz/fuzz_*; do
  [ -f "$fuzzer" ] && [ -x "$fuzzer" ] || continue
  name=$(basename "$fuzzer")
  corpus=$build/corpus/$name
  mkdir -p "$corpus" "$build/findings"
  seeds=()
  [ -d "$here/tests/fuzz/corpus/${name#fuzz_}" ] && seeds=("$here/tests/fuzz/corpus/${name#fuzz_}")
  dictionary=()
  [ -f "$here/tests/fuzz/${name#fuzz_}.dict" ] && dictionary=("-dict=$here/tests/fuzz/${name#fuzz_}.dict")
  echo "$name: $seconds s"
  "$fuzzer" -max_total_time="$seconds" -timeout=10 -rss_limit_mb=4096 -print_final_stats=1 \
    -artifact_prefix="$build/findings/$name-" "${dictionary[@]}" "$corpus" "${seeds[@]}" >"$build/findings/$name.log" 2>&1 || { failed=1; tail -30 "$build/findings/$name.log"; }
  grep -E "stat::number_of_executed_units|stat::peak_rss_mb" "$build/findings/$name.log" || true
done
exit $failed
