#!/usr/bin/env bash
# `shardwise calibrate` from outside: exit codes, one line without a GPU, a profile that is written,
# read back and compared.
set -u
folder=$(mktemp -d) || exit 1
trap 'rm -rf "$folder"' EXIT
failed=0
fail() {
  printf '%s\n' "$*"
  failed=1
}

# The program that measures is hidden: no folder of PATH holds it, and the copy stands alone.
mkdir "$folder/bin"
cp "$SHARDWISE" "$folder/bin/shardwise"
export SHARDWISE_CATALOG=$SHARDWISE_SOURCE_DIR/catalog
alone() { env PATH=/nonexistent "$folder/bin/shardwise" "$@"; }

said=$(alone calibrate --quick 2>&1)
code=$?
((code == 4)) || fail "calibrate without shardwise-calibrate: exit $code instead of 4"
[[ $(wc -l <<<"$said") == 1 && $said == *"calibrate import"* ]] || fail "not one line with a way on: $said"

alone calibrate imprt x >/dev/null 2>&1
(($? == 2)) || fail "an unknown word is a wrong request"

cat >"$folder/allreduce.log" <<'LOG'
# Collective test starting: all_reduce_perf
# nThread 1 nGpus 2 minBytes 1048576 maxBytes 1073741824 step: 4(factor)
#  Rank  0 Group  0 Pid 1 on box device  0 [0x01] NVIDIA GeForce RTX 4090
#  Rank  1 Group  0 Pid 1 on box device  1 [0x02] NVIDIA GeForce RTX 4090
     1048576        262144     float     sum      -1    120.0    8.74    8.74      0    120.0    8.74    8.74      0
    16777216       4194304     float     sum      -1   1398.1   12.00   12.00      0   1398.1   12.00   12.00      0
   268435456      67108864     float     sum      -1    20649   13.00   13.00      0    20649   13.00   13.00      0
   268435456      67108864     float     sum      -1    10649   13.00   13.00      0    20649   13.00   13.00      0
LOG
said=$(alone calibrate import "$folder/allreduce.log" --out "$folder/mine.json" --peer-access no)
code=$?
((code == 0)) || fail "import: exit $code: $said"
[[ $said == *"line 8: its time and its bandwidth do not agree"* ]] || fail "the wrong row is not named: $said"
[[ $said == *"links.shm"* ]] || fail "no constant was fitted: $said"

# Of what was read it is said that it was not kept, and of nothing else.
alone calibrate import "$folder/allreduce.log" | grep -q 'read and not kept' || fail "nothing says what was not kept"
: >"$folder/nothing.log"
for words in "$folder/nothing.log" "$folder/allreduce.log --out $folder"; do
  # shellcheck disable=SC2086
  alone calibrate import $words 2>/dev/null | grep -q 'read and not kept' && fail "said to be read: $words"
done

# A file of no format that we know is one problem, told once; what was read beside it is told all the same.
echo "nothing that we know" >"$folder/junk.txt"
alone calibrate import "$folder/junk.txt" "$folder/allreduce.log" >"$folder/both.txt" 2>"$folder/error.txt"
(($? == 4)) || fail "a file of no known format is not told by the exit code"
grep -q 'junk.txt' "$folder/both.txt" && fail "a file that is not understood is told of twice"
[[ $(grep -c 'junk.txt: no format' "$folder/error.txt") == 1 ]] || fail "junk.txt: $(<"$folder/error.txt")"
grep -q '^allreduce.log: nccl-tests' "$folder/both.txt" || fail "the other file is not told of"

# Cards of other kinds are held against their own datasheets: a 4090's 16 lanes of PCIe 4, an A100's NVLink.
alone calibrate diff rtx-4090-peer-access-off a100-sxm4-80gb-published >"$folder/diff.txt" || fail "diff of two cards"
for said in 'different GPUs' "of PCIe's 31.5" "of NVLink's 300.0"; do
  grep -qF "$said" "$folder/diff.txt" || fail "diff of two cards lacks \"$said\": $(<"$folder/diff.txt")"
done

alone calibrate diff "$folder/mine.json" "$folder/mine.json" >"$folder/diff.txt" || fail "diff"
grep -q 'links.shm' "$folder/diff.txt" || fail "diff names no constant"
grep -q 'apart' "$folder/diff.txt" && fail "a profile is not apart from itself"
for other in published publishd; do  # every GPU's constants, and nothing
  alone calibrate diff "$folder/mine.json" "$other" >"$folder/diff.txt" 2>&1
  (($? == 2)) && [[ $(wc -l <"$folder/diff.txt") == 1 ]] && grep -q '^shardwise: PROFILE: "publish' "$folder/diff.txt" &&
    grep -q 'a40-published' "$folder/diff.txt" || fail "diff with $other: $(<"$folder/diff.txt")"
done

alone simulate 8b --gpus 2x4090 --method qlora --plan dp=2 --profile "$folder/mine.json" >"$folder/answer.txt" 2>&1 ||
  fail "simulate with the profile: $(cat "$folder/answer.txt")"
grep -q 'profile mine' "$folder/answer.txt" || fail "the answer does not name its profile"
# A 4090's PCIe has no peer access by the catalog: who names a profile that had it has it as well.
alone calibrate import "$folder/allreduce.log" --out "$folder/peers.json" --peer-access yes >/dev/null
alone simulate 8b --gpus 2x4090 --method qlora --plan dp=2 --profile "$folder/peers.json" >"$folder/answer.txt" 2>&1
grep -q 'profile peers' "$folder/answer.txt" || fail "a profile with peer access serves nobody"
alone simulate 8b --gpus 8xH100-SXM --method qlora --plan dp=8 --profile "$folder/mine.json" >"$folder/answer.txt" 2>&1
grep -q -- '--profile changes nothing here: it is of rtx-4090' "$folder/answer.txt" ||
  fail "a profile of another GPU is taken in silence"

for day in foo 2026-02-30 2026-1-2 2026-01-02x; do
  alone calibrate import "$folder/allreduce.log" --date "$day" --out "$folder/no.json" >/dev/null 2>"$folder/told"
  (($? == 2)) && grep -q "YYYY-MM-DD" "$folder/told" || fail "--date $day: $(<"$folder/told")"
done
[[ ! -e $folder/no.json ]] || fail "a profile of no day was written"
alone calibrate import "$folder/allreduce.log" --json | grep -q '"schema_version": 1' || fail "--json"

# Two products where a fit needs 12, and a text that no label holds.
cat >"$folder/finder.log" <<'LOG'
** Dtype: torch.bfloat16
_CudaDeviceProperties(name='NVIDIA GeForce RTX 4090', major=8, minor=9)
mean:   150.0 TFLOPS @ 2048x2048x4096 (MxNxK)
mean:   160.0 TFLOPS @ 4096x2048x4096 (MxNxK)
LOG
# Products alone are no sweep over sizes: not silence, nor a heading with nothing below it.
alone calibrate import "$folder/finder.log" --fits --check >"$folder/answer.txt" 2>&1
grep -q 'no sweep over sizes' "$folder/answer.txt" && ! grep -q '^Leave one' "$folder/answer.txt" ||
  fail "--fits --check of products alone: $(<"$folder/answer.txt")"
told() { # text, import's arguments: refused as a wrong request with this text
  local text=$1
  shift
  alone calibrate import "$folder/finder.log" --out "$folder/no.json" "$@" >/dev/null 2>"$folder/told"
  (($? == 2)) && grep -qF -- "$text" "$folder/told" || fail "import $*: $(<"$folder/told")"
}
told "12 products with a mean or a median in a format of rtx-4090 (2 found)"
told '--only: no label or source of the measurements holds "zzz"; labels are NVIDIA' --only zzz
[[ ! -e $folder/no.json ]] || fail "a profile of nothing was written"
alone calibrate import "$folder/nothing.log" >/dev/null 2>&1
(($? == 4)) || fail "a file that is not there"
exit "$failed"
