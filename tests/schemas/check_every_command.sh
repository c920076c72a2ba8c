#!/usr/bin/env bash
# Every command that knows --json has a schema in docs/schemas, and a test that holds real answers
# against it.
set -u
program=${SHARDWISE:?}
cd "${SHARDWISE_SOURCE_DIR:?}" || exit 4
passed=0 failed=0

has_schema() {  # NAME
  [[ -s docs/schemas/$1.schema.json ]] &&
    grep -q "schema_of(\"$1\")" tests/schemas/output_schema_test.cpp
}

check_command() {  # COMMAND...: an inner command has its own, or prints what the outer one prints
  local name help inner
  name=$(IFS=-; echo "$*")
  help=$("$program" "$@" --help)
  if grep -q '^  --json ' <<<"$help"; then
    if has_schema "$name" || has_schema "$1"; then
      passed=$((passed + 1))
    else
      printf 'FAILED: %s has no schema that a test reads\n' "$*"
      failed=$((failed + 1))
    fi
  fi
  for inner in $(sed -n '/^Subcommands:/,$s/^  \([a-z]\+\) .*/\1/p' <<<"$help"); do
    check_command "$@" "$inner"
  done
}

for command in $("$program" --help | sed -n '/^Subcommands:/,$s/^  \([a-z]\+\) .*/\1/p'); do
  check_command "$command"
done
((passed >= 11)) || failed=$((failed + 1)) # --help was read
printf '%d passed, %d failed\n' "$passed" "$failed"
exit "$((failed > 0))"
