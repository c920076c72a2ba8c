#!/usr/bin/env bash
# How `shardwise serve` bears 200 clients at once, each asking as soon as it is answered (wrk, Debian
# package wrk): the same `fit` from all, which is worked out once, and questions that nobody asked
# before, which wait for the processors.
#
#   tests/bench/serve.sh [SECONDS]        60 where not said
#
# On 2026-11-21, on two cores shared with wrk, 60 s each, 200 clients: no error and p99 5 ms for one
# card's answer (66,300 a second), 15 ms for all cards' (21,700 a second, 88 kB each). What nobody
# asked before takes the time of its forecasts: 50 a second for all clients together, so that each
# waits for seconds (median 4.0, p99 4.5), first come, first served.
set -eu
cd -- "$(dirname -- "${BASH_SOURCE[0]}")/../.."
program=${SHARDWISE:-$PWD/build/release/shardwise}
seconds=${1:-60}
command -v wrk >/dev/null || { echo 'there is no wrk' >&2; exit 4; }

scratch=$(mktemp -d)
"$program" serve --port 0 >"$scratch/address" &
server=$!
trap 'kill "$server"; rm -rf "$scratch"' EXIT
until [[ -s $scratch/address ]]; do sleep 0.1; done
address=$(<"$scratch/address")api/fit

cat >"$scratch/same.lua" <<'LUA'
wrk.method = "POST"
wrk.body = '{"model": "llama-3.1-8b", "gpus": "2xRTX-4090", "method": ["qlora"]}'
LUA
cat >"$scratch/all_cards.lua" <<'LUA'
wrk.method = "POST"
wrk.body = '{"model": "llama-3.1-8b", "gpus": "2x24GB"}'
LUA
cat >"$scratch/new.lua" <<'LUA'
local asked = 0
request = function()
  asked = asked + 1
  return wrk.format("POST", nil, {}, '{"model": "llama-3.1-8b", "gpus": "2xRTX-4090", ' ..
    '"method": ["qlora"], "sequence": ' .. 256 + 8 * asked .. '}')
end
LUA
for questions in same all_cards new; do
  read -r load _ </proc/loadavg
  echo "== $questions, load before: $load"
  wrk --threads 1 --connections 200 --duration "$seconds" --timeout 60 --latency \
    --script "$scratch/$questions.lua" "$address" |
    grep -E 'Latency  |50%|99%|Socket|Non-2xx|requests in|Requests/sec'
done
