#!/usr/bin/env bash
# Commands and flags that a document names exist, also where no answer stands below them: what is
# renamed must be renamed there as well.
set -u
cd -- "$(dirname -- "${BASH_SOURCE[0]}")/../.." || exit 4
program=${SHARDWISE:-$PWD/build/release/shardwise}
[[ -x $program ]] || exit 77

# Of CMake, shardwise-calibrate, torchrun and torchtitan, measure_torch_kernels.py, tests/lint.
foreign=(--preset --build --install --prefix
  --quick --full --resume --list --simulated-device --check-libraries
  --nnodes --nproc --nproc-per-node --no-python --rdzv --job
  --compare --fix-format)

help_of() {  # COMMAND...: its --help and that of every command below
  local help inner
  help=$("$program" "$@" --help)
  printf '%s\n' "$help"
  for inner in $(sed -n '/^Subcommands:/,$s/^  \([a-z]\+\) .*/\1/p' <<<"$help"); do
    help_of "$@" "$inner"
  done
}
all_help=$(help_of)
flags=$(grep -oE -e '^  (-[a-z],)?--[a-z-]+' <<<"$all_help" | grep -oE -e '--[a-z-]+')
commands=$(sed -nE 's/^  ([a-z]+) {2,}.*/\1/p' <<<"$all_help")
(($(wc -w <<<"$flags") > 100 && $(wc -w <<<"$commands") > 10)) || exit 1 # --help was read

failed=0
report() {  # WHAT KNOWN, words on stdin: FILE:WORD
  local line
  while IFS= read -r line; do
    grep -qxF -e "${line##*:}" <<<"$2" && continue
    printf '%s: there is no %s "%s"\n' "${line%%:*}" "$1" "${line##*:}"
    failed=1
  done
}
documents=(README.md CONTRIBUTING.md docs/*.md)
report flag "$flags"$'\n'"$(printf '%s\n' "${foreign[@]}")" \
  < <(grep -oHE -e '(^|[ `[(])--[a-z][a-z-]*' "${documents[@]}" | sed 's/:[ `[(]/:/' | sort -u)
report command "$commands"$'\ncompletion\nman' \
  < <(grep -oHE -e '(^|`|\$ |\./|\()shardwise [a-z]+' "${documents[@]}" | sed 's/:.* /:/' | sort -u)
exit "$failed"
