# Sourced by the checks of this folder: counts what passed and says what failed.
passed=0 failed=0

verdict() {  # STATUS WHAT
  if (($1)); then
    failed=$((failed + 1))
    printf 'FAILED: %s\n' "$2"
  else
    passed=$((passed + 1))
  fi
}
