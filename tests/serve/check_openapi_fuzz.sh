#!/usr/bin/env bash
# The server against requests drawn from its own description: see openapi_fuzz.py. Skipped where it
# was not built or there is no Python.
set -u
cd -- "$(dirname -- "${BASH_SOURCE[0]}")/../.." || exit 4
program=${SHARDWISE:-$PWD/build/release/shardwise}
[[ -x ${program}-serve ]] || { echo "skipped: there is no ${program}-serve"; exit 77; }
command -v python3 >/dev/null || { echo 'skipped: there is no python3'; exit 77; }
exec python3 tests/serve/openapi_fuzz.py "$program"
