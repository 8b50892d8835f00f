#!/usr/bin/env bash
# crest-sim from the outside: what it prints, writes and returns. Usage: cli_test.sh CREST_SIM KERNEL_DIR HIP_LIBRARY
set -u
sim=$1 kernels=$2 library=$3
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failures=0

# expect CODE TEXT ARGUMENTS...: exit code, and a part of what is printed (stdout and stderr)
expect() {
  local code=$1 text=$2 got rc
  shift 2
  got=$("$sim" "$@" 2>&1)
  rc=$?
  if [ $rc -ne "$code" ]; then
    echo "FAILED (exit code $rc, not $code): crest-sim $*"; echo "$got"; failures=$((failures + 1))
  elif [[ "$got" != *"$text"* ]]; then
    echo "FAILED (no \"$text\"): crest-sim $*"; echo "$got"; failures=$((failures + 1))
  fi
}

basic=$kernels/basic.gfx942.co
add=(run "$basic" vadd --grid 4 --block 256 --arg f32:1000:iota --arg f32:1000:iota:0:2)

expect 0 "Examples:" --help
expect 0 "f32:1000:random" run --help
expect 2 "subcommand" 
expect 2 "" no-such-command
expect 2 "does not exist" list "$work/none.co"
expect 0 "vadd" list "$basic"
expect 0 '"Kernel_Name": "vadd"' list "$basic" --json
expect 0 "argument 2 (f32): 0 3 6 9 ..." "${add[@]}" --arg f32:1000 --arg i32=1000 --print 2:4 --output "2=$work/c.npy"
expect 0 "0 elements differ" run "$basic" vadd --grid 4 --block 256 --arg f32:1000:iota --arg f32:1000:iota:0:2 \
  --arg f32:1000 --arg i32=1000 --expect "2=$work/c.npy"
expect 1 "first at element 999: 0, expected 2997" run "$basic" vadd --grid 4 --block 256 --arg "@$work/c.npy" --arg f32:1000:zeros \
  --arg f32:1000 --arg i32=999 --expect "2=$work/c.npy" --output "2=$work/d.npy"
expect 0 "" run "$basic" vadd --grid 4 --block 256 --arg "@$work/c.npy" --arg f32:1000:zeros --arg f32:1000 \
  --arg i32=1000 --output "2=$work/raw.bin"
[ "$(stat -c %s "$work/raw.bin")" = 4000 ] || { echo "FAILED: the raw file has not 4000 bytes"; failures=$((failures + 1)); }
expect 0 '"wave_instructions"' "${add[@]}" --arg f32:1000 --arg i32=1000 --json
expect 0 "v_add_f32" "${add[@]}" --arg f32:1000 --arg i32=1000 --report
expect 0 "" "${add[@]}" --arg f32:1000 --arg i32=1000 --report-file "$work/report.json"
grep -q '"mnemonics"' "$work/report.json" || { echo "FAILED: no report file"; failures=$((failures + 1)); }

# Wrong use is named: the option, the value and what is allowed.
expect 2 "takes 4 arguments, 3 were given" "${add[@]}" --arg i32=1000
expect 2 "the kernel takes 4 bytes, i64 has 8" "${add[@]}" --arg f32:1000 --arg i64=1000
expect 2 "not a buffer" "${add[@]}" --arg f32:1000 --arg f32:1000
expect 2 "TYPE:COUNT:FILL" "${add[@]}" --arg f33:1000 --arg i32=1
expect 2 "a fill is" "${add[@]}" --arg f32:1000:what --arg i32=1
expect 2 "not a value of i32" "${add[@]}" --arg f32:1000 --arg i32=3000000000
expect 2 "argument 3 is no buffer" "${add[@]}" --arg f32:1000 --arg i32=1000 --print 3
expect 2 "--grid 0" run "$basic" vadd --grid 0 --block 256
expect 2 "the kernel allows 256" run "$basic" vadd --block 512 --arg f32:9 --arg f32:9 --arg f32:9 --arg i32=9
expect 2 "no kernel \"no_such\"" run "$basic" no_such
expect 2 "cannot be read" run "$basic" vadd --arg "f32:@$work/none" 
head -c 3000 "$basic" >"$work/cut.co"
expect 2 "code object" list "$work/cut.co"
echo "not an object" >"$work/text.co"
expect 2 "neither an ELF file nor an offload bundle" list "$work/text.co"

# A faulting kernel.
expect 1 "outside every allocation" run "$basic" vadd --grid 4 --block 256 --arg f32:999:iota --arg f32:1000:iota \
  --arg f32:1000 --arg i32=1000

# Checks.
broken=$kernels/broken.gfx942.co
expect 0 "0 findings" check "$basic" vadd --grid 4 --block 256 --arg f32:1000:iota --arg f32:1000:iota --arg f32:1000 \
  --arg i32=1000
expect 1 "lds-race" check "$broken" sum_without_barrier --block 256 --arg f32:256:iota --arg f32:1
expect 0 "0 findings" check "$broken" sum_without_barrier --block 256 --arg f32:256:iota --arg f32:1 --checks wait,hazard
expect 1 '"check": "uninitialised"' check "$broken" reads_unwritten_lds --block 128 --arg f32:128:iota --arg f32:128 --json
expect 2 "--checks sometimes" check "$broken" reads_unwritten_lds --block 128 --arg f32:128 --arg f32:128 --checks sometimes

# Listings.
expect 0 "s_endpgm" disasm "$basic" vadd
expect 0 "Hitcount" disasm "$basic" vadd --grid 4 --block 256 --arg f32:1000 --arg f32:1000 --arg f32:1000 --arg i32=1000
expect 0 "report.hip" disasm "$kernels/report.gfx942.co" two_ways --block 64 --arg i32:64 --arg i32:64 --arg i32=1
expect 0 "data only" run "$kernels/report.gfx942.co" only_data --block 64 --arg f32:64:random --arg f32:64 \
  --report --follow-approximate

# The same launch through a HIP library.
CREST_SIM_DEVICES=gfx942 expect 0 "argument 2: 0 of 1000 elements differ from gfx942" "${add[@]}" --arg f32:1000 \
  --arg i32=1000 --gpu "$library"
expect 2 "--gpu $work/none.so" "${add[@]}" --arg f32:1000 --arg i32=1000 --gpu "$work/none.so"

# Ctrl-C.
"$sim" run "$kernels/launch.gfx942.co" endless --block 64 --arg u32:64 >/dev/null 2>&1 &
process=$!
sleep 1
kill -INT $process
wait $process
rc=$?
[ $rc -eq 130 ] || { echo "FAILED: interrupted with exit code $rc"; failures=$((failures + 1)); }
expect 1 "more instructions than the launch allows" run "$kernels/launch.gfx942.co" endless --block 64 --arg u32:64 \
  --max-instructions 1000000

[ $failures -eq 0 ] || exit 1
