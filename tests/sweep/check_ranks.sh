#!/usr/bin/env bash
# A sweep over MPI ranks whose processes are killed midway: rank 1, then rank 0, each with SIGKILL.
# What was in the file stays in it, byte for byte, --resume goes on, and the whole is that of a
# sweep that nobody disturbed. Skipped where there is no Open MPI.
set -u
program=${SHARDWISE:?the path of the program}
if ! command -v mpirun >/dev/null; then
  echo 'skipped: there is no mpirun (Debian: openmpi-bin)'
  exit 77
fi
if [[ $(mpirun --version 2>/dev/null) != *'Open MPI'* ]]; then
  echo 'skipped: this mpirun is not that of Open MPI, whose ranks the test knows how to find'
  exit 77
fi
if [[ ! -x ${program%/*}/shardwise-sweep-mpi ]]; then
  echo 'skipped: shardwise-sweep-mpi is not built: no MPI was found (Debian: libopenmpi-dev)'
  exit 77
fi
folder=$(mktemp -d) || exit 1
job=
clean() {
  [[ -z $job ]] || kill -KILL "$job" 2>/dev/null
  rm -rf "$folder"
}
trap clean EXIT
cd "$folder" || exit 1

# As root, on one machine without ssh, on fewer cores than ranks; Open MPI's own leaks are not ours.
launch=(mpirun --allow-run-as-root --oversubscribe)
export OMPI_MCA_plm_rsh_agent=false OMPI_MCA_btl_vader_single_copy_mechanism=none
export TMPDIR=$folder ASAN_OPTIONS=detect_leaks=0
export SHARDWISE_CATALOG=${SHARDWISE_SOURCE_DIR:?}/catalog

failed=0
fail() {
  printf '%s\n' "$*"
  failed=1
}

# 3 models x 2 GPUs x 2 methods x 2 sequences x 32 batches x 2 plans = 1,536 points: enough that a
# rank is killed long before the end, however fast it is.
cat >study.json <<JSON
{"name": "ranks",
 "base": {},
 "axes": {"model": ["gpt2", "llama-3.2-1b", "llama-3.1-8b"],
          "gpus": ["4xRTX-4090", "8xA100-80GB"],
          "method": ["full", "lora"],
          "sequence": [1024, 2048],
          "batch": [$(seq -s ', ' 16 16 512)],
          "plans": ["fit", "dp=4,zero=3"]}}
JSON
points=1536

csv() { "$program" sweep report "$1" --csv; }
finished() { csv "$1" 2>/dev/null | tail -n +2 | wc -l; }

# The process of a rank: the child of mpirun whose environment says so.
process_of() {
  local rank=$1 folder
  for folder in /proc/[0-9]*; do
    grep -qs "^PPid:[[:space:]]*$job\$" "$folder/status" || continue
    tr '\0' '\n' <"$folder/environ" 2>/dev/null | grep -qx "OMPI_COMM_WORLD_RANK=$rank" || continue
    printf '%s\n' "${folder#/proc/}"
    return
  done
}

# kill_midway RANK FILE [FLAG...]: a sweep over two ranks, of which one is killed as soon as more
# points are finished than were before.
kill_midway() {
  local rank=$1 file=$2 before after pid
  shift 2
  before=$(finished "$file")
  "${launch[@]}" -n 2 "$program" sweep study.json --out "$file" --threads 1 "$@" >killed.txt 2>&1 &
  job=$!
  pid=
  while kill -0 "$job" 2>/dev/null && [[ -z $pid ]]; do pid=$(process_of "$rank"); done
  [[ -n $pid ]] || fail "rank $rank was not found: $(cat killed.txt)"
  while kill -0 "$job" 2>/dev/null && (($(finished "$file") < before + 10)); do sleep 0.01; done
  csv "$file" >"$file.seen"
  [[ -z $pid ]] || kill -KILL "$pid"
  wait "$job" && fail "mpirun ended well although rank $rank was killed"
  job=
  after=$(finished "$file")
  ((after >= before + 10)) || fail "only $after points after rank $rank was killed"
  ((after < points)) || fail "rank $rank was killed after the end: nothing is shown"
  printf 'rank %s killed: %s points before, %s in the file after\n' "$rank" "$before" "$after"
  csv "$file" >"$file.after"
  [[ -z $(comm -23 <(sort "$file.seen") <(sort "$file.after")) ]] ||
    fail "a finished result was lost when rank $rank was killed"
}

"$program" sweep study.json --out whole.sqlite >/dev/null 2>whole.txt || fail "$(cat whole.txt)"
csv whole.sqlite >whole.csv
(($(wc -l <whole.csv) == points + 1)) || fail "$(wc -l <whole.csv) lines for $points points"

kill_midway 1 killed.sqlite
kill_midway 0 killed.sqlite --resume
kept=$(finished killed.sqlite)
"${launch[@]}" -n 2 "$program" sweep study.json --out killed.sqlite --resume --json >resumed.json 2>resumed.txt ||
  fail "the sweep was not gone on with: $(cat resumed.txt)"
tr -d , <resumed.txt | grep -q "^sweep: $((points - kept)) points in .*; $kept were there already" ||
  fail "not the missing points alone were worked out: $(cat resumed.txt)"
csv killed.sqlite | cmp - whole.csv || fail 'the resumed sweep differs from the undisturbed one'
"$program" sweep report killed.sqlite --json | cmp - resumed.json || fail 'the report differs'
"$program" sweep report whole.sqlite --json | cmp - resumed.json || fail 'the JSON differs'

# More ranks than points: who comes too late goes home.
printf '{"base": {"model": "gpt2", "gpus": "4090"}, "axes": {"batch": [1, 2]}}' >few.json
"$program" sweep few.json >few.txt 2>/dev/null || fail 'two points on threads'
"${launch[@]}" -n 3 "$program" sweep few.json --out three.sqlite --threads 2 2>three.txt | cmp - few.txt ||
  fail "three ranks for two points: $(cat three.txt)"
# What rank 0 refuses is told once, and by the exit code.
"${launch[@]}" -n 2 "$program" sweep study.json --out whole.sqlite >/dev/null 2>refused.txt
(($? == 4)) || fail 'a file that is there already is not refused with exit code 4'
(($(grep -c '^shardwise: ' refused.txt) == 1)) || fail "not one line: $(cat refused.txt)"
PMI_SIZE=2 PMI_RANK=0 "$program" sweep study.json --out alone.sqlite >/dev/null 2>refused.txt
(($? == 2)) || fail "a rank that MPI does not know of: $(cat refused.txt)"
((failed)) || echo "a rank killed midway loses nothing: $points points, the same bytes"
exit "$failed"
