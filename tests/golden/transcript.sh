# Sourced by check.sh and approve.sh. A transcript, tests/golden/*.txt, is what a person would see:
#
#   $ shardwise catalog show rtx-9090
#   shardwise: no GPU is called "rtx-9090" ...
#   [exit 2]
#
# A command is a line that starts with "$ ", run by bash in the repository root; below it stand
# its stdout and stderr together, and its exit code where that is not 0. In a document, README.md
# or docs/*.md, the same stands inside ```console blocks; everything around them is text.
cd -- "$(dirname -- "${BASH_SOURCE[0]}")/../.." || exit 4
program=${SHARDWISE:-$PWD/build/release/shardwise}

shardwise() { "$program" "$@"; }

# Runs one line that starts with "$ " and prints it with today's answer.
answer() {
  local output status
  output=$(eval "${1#'$ '}" </dev/null 2>&1)
  status=$?
  printf '%s\n' "$1"
  [[ -z $output ]] || printf '%s\n' "$output"
  ((status == 0)) || printf '[exit %d]\n' "$status"
}

# play FILE: prints the transcript or document as the program answers today. What its commands write
# below /tmp is removed.
play() {
  local line inside=0 document=0
  [[ $1 == *.md ]] && document=1
  while IFS= read -r line; do
    if ((document)) && [[ $line == '```'* ]]; then
      printf '%s\n' "$line"
      if [[ $line == '```console' ]]; then inside=1; else inside=0; fi
    elif [[ $line == '$ '* ]] && ((inside || !document)); then
      answer "$line"
    elif ((document && !inside)); then
      printf '%s\n' "$line"
    fi
  done <"$1"
  grep -oE -e '--out /tmp/[a-z0-9.-]+' "$1" | cut -d ' ' -f 2 | sort -u | xargs -r rm -rf
}

# Documents whose commands take seconds: each is a test of its own.
slow_documents=(docs/how-wrong.md)

# Every other transcript, and every other document that has commands in it.
quick_transcripts() {
  grep -l '^```console$' README.md docs/*.md | grep -vxF "$(printf '%s\n' "${slow_documents[@]}")"
  printf '%s\n' tests/golden/*.txt
}

# check FILE...: shows where today's answers differ and says how many files do.
check() {
  local transcript passed=0 failed=0
  for transcript; do
    if play "$transcript" | diff --label "$transcript" --label today -u "$transcript" -; then
      passed=$((passed + 1))
    else
      failed=$((failed + 1))
    fi
  done
  printf '%d passed, %d failed\n' "$passed" "$failed"
  return "$((failed > 0))"
}
