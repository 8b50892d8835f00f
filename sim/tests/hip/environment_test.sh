#!/usr/bin/env bash
# The CREST_SIM_* variables. Usage: environment_test.sh PROGRAM_DIR LIBRARY_DIR
set -u
programs=$1
export LD_LIBRARY_PATH=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failures=0

# expect CODE TEXT VARIABLE=VALUE... PROGRAM
expect() {
  local code=$1 text=$2 got rc
  shift 2
  got=$(env "${@:1:$#-1}" "$programs/hip_${!#}" 2>&1)
  rc=$?
  if [ $rc -ne "$code" ] || [[ "$got" != *"$text"* ]]; then
    echo "FAILED (exit code $rc, wanted $code and \"$text\"): $*"; echo "$got"; failures=$((failures + 1))
  fi
}

expect 0 "" CREST_SIM_DEVICES=gfx950 CREST_SIM_THREADS=1 vector_add
expect 0 "" CREST_SIM_DEVICES=gfx1151,gfx942 CREST_SIM_STRICT_MATRIX=1 CREST_SIM_MEMORY_GIB=1 vector_add
expect 1 '"gfx9000" is not one of gfx942, gfx950, gfx1100, gfx1151' CREST_SIM_DEVICES=gfx942,gfx9000 vector_add
expect 1 "CREST_SIM_THREADS=many: allowed are 0 to 1024" CREST_SIM_THREADS=many vector_add
expect 1 "CREST_SIM_STRICT_MATRIX=2" CREST_SIM_STRICT_MATRIX=2 vector_add
expect 1 "more instructions than the launch allows" CREST_SIM_MAX_INSTRUCTIONS=10 endless

# The checks: a race and an unwritten value become errors of their stream, and a report.
for arch in gfx942 gfx1100; do
  for found in "race lds-race" "unwritten uninitialised"; do
    program=${found% *} check=${found#* }
    expect 0 "" CREST_SIM_DEVICES=$arch CREST_SIM_CHECKS=wait,hazard,barrier $program
    got=$(CREST_SIM_DEVICES=$arch CREST_SIM_CHECKS=standard "$programs/hip_$program" found 2>&1) && [[ "$got" == *"$check"* ]] ||
      { echo "FAILED: $program on $arch: $got"; failures=$((failures + 1)); }
  done
  for program in vector_add reduction graph_replay streams symbols unwritten; do
    got=$(CREST_SIM_DEVICES=$arch CREST_SIM_CHECKS=all "$programs/hip_$program" 2>&1) && [ -z "$got" ] ||
      { echo "FAILED: false alarm in $program on $arch: $got"; failures=$((failures + 1)); }
  done
done
expect 1 "CREST_SIM_CHECKS=lds" CREST_SIM_CHECKS=lds vector_add

expect 0 "" "CREST_SIM_REPORT=$work/report.txt" CREST_SIM_FOLLOW_APPROXIMATE=1 reduction
grep -q "kernel .*softmax_row.*gfx942" "$work/report.txt" && grep -q "approximate (data only)" "$work/report.txt" ||
  { echo "FAILED: report.txt"; cat "$work/report.txt"; failures=$((failures + 1)); }
expect 0 "" "CREST_SIM_REPORT=$work/%p.json" vector_add
grep -q '"wave_instructions"' "$work"/*.json || { echo "FAILED: no JSON report"; failures=$((failures + 1)); }
expect 0 "cannot be written" "CREST_SIM_REPORT=$work/none/report.txt" vector_add

[ $failures -eq 0 ] || exit 1
