#!/usr/bin/env bash
# Replays every published run and compares with what docs/how-wrong.md says our error is. A reviewed
# change is accepted with tests/golden/approve.sh.
set -u
source "$(dirname -- "${BASH_SOURCE[0]}")/transcript.sh"
[[ -x $program ]] || exit 77
check "${slow_documents[@]}"
