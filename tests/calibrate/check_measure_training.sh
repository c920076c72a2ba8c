#!/usr/bin/env bash
# measure_training.py and measure_torch_kernels.py without PyTorch: the cases of its grids are listed, each once, and a machine
# where PyTorch sees no GPU is told in one line. Skipped where there is no Python 3.
set -u
command -v python3 >/dev/null || { echo 'no python3'; exit 77; }
script=${SHARDWISE_SOURCE_DIR:?}/calibrate/measure_training.py
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
failures=0
fail() {
  echo "$*"
  failures=$((failures + 1))
}
export PYTHONDONTWRITEBYTECODE=1

quick=$(python3 "$script" --dry-run) || fail '--dry-run failed'
full=$(python3 "$script" --dry-run --full) || fail '--dry-run --full failed'
# 4 models x 3 methods x 5 shapes; 6 models x 3 methods x 2 recomputations x 2 compilations x 10
# shapes, which hold all of the quick ones.
(($(wc -l <<<"$quick") == 60)) || fail "expected 60 quick cases, found $(wc -l <<<"$quick")"
(($(wc -l <<<"$full") == 720)) || fail "expected 720 cases, found $(wc -l <<<"$full")"
[[ -z $(sort <<<"$full" | uniq -d) ]] || fail 'a case stands twice'
[[ -z $(comm -23 <(sort <<<"$quick") <(sort <<<"$full")) ]] || fail 'full lacks a quick case'

said=$(CUDA_VISIBLE_DEVICES='' python3 "$script" --output "$folder/runs.json" 2>&1)
status=$?
((status == 4)) || fail "without a GPU: expected exit code 4, found $status: $said"
[[ $said == 'measure_training.py: error: PyTorch sees no GPU here'* ]] || fail "found: $said"
[[ ! -e $folder/runs.json ]] || fail 'a file was left behind'

kernels=${script%/*}/measure_torch_kernels.py
said=$(CUDA_VISIBLE_DEVICES='' python3 "$kernels" --output "$folder/kernels.jsonl" 2>&1)
status=$?
((status == 4)) || fail "without a GPU: expected exit code 4, found $status: $said"
[[ $said == 'measure_torch_kernels.py: error: PyTorch sees no GPU'* ]] || fail "found: $said"

# docs/measuring.md has a row for every script.
for each in "${script%/*}"/*.py; do
  grep -qF "| \`${each##*/}\` |" "${SHARDWISE_SOURCE_DIR}/docs/measuring.md" ||
    fail "docs/measuring.md does not tell of ${each##*/}"
done
((failures == 0))
