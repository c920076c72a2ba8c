# Sourced by check.sh and approve.sh. A transcript, tests/golden/*.txt, is what a person would see:
#
#   $ shardwise catalog show rtx-9090
#   shardwise: no GPU is called "rtx-9090" ...
#   [exit 2]
#
# A command is a line that starts with "$ ", run by bash in the repository root; below it stand
# its stdout and stderr together, and its exit code where that is not 0. In a document, docs/*.md,
# the same stands inside ```console blocks; everything around them is text.
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

# play FILE: prints the transcript or document as the program answers today.
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
}

# Every transcript, and every document that has commands in it.
all_transcripts() { grep -l '^```console$' docs/*.md; printf '%s\n' tests/golden/*.txt; }
