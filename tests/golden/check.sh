#!/usr/bin/env bash
# Plays every transcript and shows where today's answer differs. A reviewed change is accepted with
# tests/golden/approve.sh. Exit code 77 (skipped) where there is nothing to play.
set -u
source "$(dirname -- "${BASH_SOURCE[0]}")/transcript.sh"
mapfile -t transcripts < <(quick_transcripts)
[[ -x $program ]] && ((${#transcripts[@]})) || exit 77
check "${transcripts[@]}"
