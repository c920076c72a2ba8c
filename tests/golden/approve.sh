#!/usr/bin/env bash
# Rewrites transcripts and documents with commands, all or those given, to what the program answers
# today; where none is given also the catalog's pages. Review the diff, then commit it. A new one
# starts with nothing but its "$ " lines.
#
#   tests/golden/approve.sh [FILE...]
set -u
transcripts=()
if (($#)); then mapfile -t transcripts < <(realpath -- "$@"); fi
source "$(dirname -- "${BASH_SOURCE[0]}")/transcript.sh"
if ((!${#transcripts[@]})); then
  mapfile -t transcripts < <(printf '%s\n' "${slow_documents[@]}" && quick_transcripts)
  shardwise catalog pages docs/catalog
fi
for transcript in "${transcripts[@]}"; do
  played=$(play "$transcript") && printf '%s\n' "$played" >"$transcript"
done
