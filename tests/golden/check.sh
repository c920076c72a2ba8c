#!/usr/bin/env bash
# Plays every transcript and shows where today's answer differs. A reviewed change is accepted with
# tests/golden/approve.sh. Exit code 77 (skipped) where there is nothing to play.
set -u
source "$(dirname -- "${BASH_SOURCE[0]}")/transcript.sh"
mapfile -t transcripts < <(all_transcripts)
[[ -x $program ]] && ((${#transcripts[@]})) || exit 77

passed=0 failed=0
for transcript in "${transcripts[@]}"; do
  if play "$transcript" | diff --label "$transcript" --label today -u "$transcript" -; then
    passed=$((passed + 1))
  else
    failed=$((failed + 1))
  fi
done
printf '%d passed, %d failed\n' "$passed" "$failed"
exit "$((failed > 0))"
