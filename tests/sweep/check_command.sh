#!/usr/bin/env bash
# `shardwise sweep` from outside, without MPI: exit codes, one line for each refusal, a file that
# another sweep is writing, and one whose process is killed midway and which is gone on with.
set -u
program=${SHARDWISE:?the path of the program}
export SHARDWISE_CATALOG=${SHARDWISE_SOURCE_DIR:?}/catalog
unset OMPI_COMM_WORLD_SIZE PMI_SIZE SLURM_STEP_NUM_TASKS
folder=$(mktemp -d) || exit 1
job=
clean() {
  [[ -z $job ]] || kill -KILL "$job" 2>/dev/null
  rm -rf "$folder"
}
trap clean EXIT
cd "$folder" || exit 1
failed=0
fail() {
  printf '%s\n' "$*"
  failed=1
}

# expect CODE TEXT WORD...: the exit code, and TEXT in what is printed; of a refusal in one line.
expect() {
  local code=$1 text=$2 said found
  shift 2
  said=$("$program" sweep "$@" 2>&1)
  found=$?
  ((found == code)) || fail "sweep $*: exit $found instead of $code: $said"
  [[ $said == *"$text"* ]] || fail "sweep $*: no \"$text\" in: $said"
  ((code == 0)) || [[ $(wc -l <<<"$said") == 1 ]] || fail "sweep $*: not one line: $said"
}

cat >few.json <<'JSON'
{"name": "few", "base": {"model": "gpt2", "method": "full"},
 "axes": {"gpus": ["2xRTX-4090", "2xRTX-3090"], "batch": [2, 4], "plans": ["fit", "dp=2"]}}
JSON
sed 's/\[2, 4\]/[2, 8]/' few.json >other.json
echo '{"axes": {"bach": [1]}}' >misspelt.json
echo '{"axes": ' >broken.json

expect 2 'STUDY: is missing'
expect 2 'misspelt.json:/axes/bach' misspelt.json
expect 4 'broken.json' broken.json
expect 4 'nothing.json' nothing.json
expect 2 '--by: expected tokens' few.json --by speed
expect 4 'nowhere/few.sqlite' few.json --out nowhere/few.sqlite
[[ ! -e few.sqlite && ! -e misspelt.sqlite ]] || fail 'a refused sweep leaves a file'

expect 0 '8 of 8 points finished' few.json
expect 4 'few.sqlite: is there already' few.json
expect 0 '0 points in' few.json --resume
expect 4 'holds another study' other.json --out few.sqlite --resume
expect 0 '8 points in' few.json --resume --out begun.sqlite
[[ -z $(find . -name '*.lock' -o -name '*-wal' -o -name '*-shm') ]] || fail "litter: $(ls)"

expect 0 'gpt2, full, 1,024 tokens per sequence, by $ per million tokens' report few.sqlite --by dollars
expect 2 'exclude one another' report few.sqlite --csv --json
expect 4 'few.json' report few.json
expect 4 'no file' report nothing.sqlite
expect 0 '"command": "sweep"' report few.sqlite --json
expect 0 'gpt2' report few.sqlite --report few.html
grep -q 'S.views.push({ id: "sweep"' few.html || fail 'the page has no ranking'

# Other data: one card with more bandwidth.
cp -r "$SHARDWISE_CATALOG" other
sed -i 's/"memory_bandwidth_gb_per_s": 1008/"memory_bandwidth_gb_per_s": 1009/' other/devices/rtx-4090.json
cmp -s other/devices/rtx-4090.json "$SHARDWISE_CATALOG/devices/rtx-4090.json" && fail 'nothing was changed'
SHARDWISE_CATALOG=$folder/other expect 4 'begun with another catalog' few.json --resume

# Under mpirun, where the program for its ranks is not there.
cp "$program" alone
said=$(OMPI_COMM_WORLD_SIZE=2 ./alone sweep few.json --out ranks.sqlite 2>&1)
(($? == 4)) && [[ $said == *libopenmpi-dev* ]] || fail "without the program for ranks: $said"

# 2 models x 2 GPUs x 2 methods x 24 batches = 192 points
cat >study.json <<'JSON'
{"axes": {"model": ["llama-3.2-1b", "llama-3.1-8b"], "gpus": ["4xRTX-4090", "8xA100-80GB"],
          "method": ["full", "lora"],
          "batch": [8, 16, 24, 32, 40, 48, 56, 64, 72, 80, 88, 96, 104, 112, 120, 128, 136, 144, 152,
                    160, 168, 176, 184, 192]}}
JSON
points=192
finished() { "$program" sweep report killed.sqlite --csv 2>/dev/null | tail -n +2 | wc -l; }
"$program" sweep study.json --out killed.sqlite --threads 1 >/dev/null 2>&1 &
job=$!
while kill -0 "$job" 2>/dev/null && (($(finished) < 10)); do sleep 0.01; done
expect 4 'another sweep is writing it' study.json --out killed.sqlite --resume
"$program" sweep report killed.sqlite --csv >seen.csv
kill -KILL "$job"
wait "$job" 2>/dev/null
job=
kept=$(finished)
((kept >= 10 && kept < points)) || fail "$kept of $points points after the kill"
"$program" sweep report killed.sqlite --csv >after.csv
[[ -z $(comm -23 <(sort seen.csv) <(sort after.csv)) ]] || fail 'a finished result was lost'
expect 0 "$((points - kept)) points in" study.json --out killed.sqlite --resume
expect 0 "$points of $points points finished" study.json --out whole.sqlite
for form in --csv --json; do
  cmp <("$program" sweep report killed.sqlite "$form") <("$program" sweep report whole.sqlite "$form") ||
    fail "the resumed sweep differs from the undisturbed one: $form"
done
((failed)) || echo "killed after $kept of $points points, gone on with: the same bytes"
exit "$failed"
