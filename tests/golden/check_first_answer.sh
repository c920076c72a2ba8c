#!/usr/bin/env bash
# The answer at the top of README.md, which leaves lines out where it says "...": every line that it
# shows is a line of today's answer, in that order.
set -u
cd -- "$(dirname -- "${BASH_SOURCE[0]}")/../.." || exit 4
program=${SHARDWISE:-$PWD/build/release/shardwise}
[[ -x $program ]] || exit 77

shown=$(awk '/^```/ { blocks++; next } blocks == 1' README.md)
question=${shown%%$'\n'*}
[[ $question == '$ ./shardwise '* ]] || { echo "README.md: no answer at the top"; exit 1; }
read -ra words <<<"${question#'$ ./shardwise '}"
answer=$("$program" "${words[@]}" 2>/dev/null)

awk -v failed=0 '
  NR == FNR { said[++n] = $0; next }
  /^ *\.\.\.$/ { next }
  {
    found = 0
    for (i = at + 1; i <= n && !found; ++i) if (said[i] == $0) { found = 1; at = i }
    if (!found) { print "README.md: not in today'\''s answer: " $0; failed = 1 }
  }
  END { exit failed }
' <(printf '%s\n' "$answer") <(tail -n +2 <<<"$shown")
