#!/usr/bin/env bash
# The pages in docs/catalog are what the data files say: written anew, they are the same. A reviewed
# change is accepted with tests/golden/approve.sh.
set -u
source "$(dirname -- "${BASH_SOURCE[0]}")/transcript.sh"
[[ -x $program ]] || exit 77
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
shardwise catalog pages "$scratch" >/dev/null && diff -ru docs/catalog "$scratch"
