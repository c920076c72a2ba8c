#!/usr/bin/env bash
# `shardwise catalog check` reads every file that a forecast may: one that is broken is named,
# whatever folder it is in, and all that are broken at once.
set -u
[[ -x ${SHARDWISE:-} ]] || exit 77
folder=$(mktemp -d) || exit 1
trap 'rm -rf "$folder"' EXIT
cp -R "${SHARDWISE_SOURCE_DIR:?}/catalog" "$folder/catalog" || exit 1
export SHARDWISE_CATALOG=$folder/catalog
passed=0 failed=0

check() {  # check EXIT-CODE FILE...: the code, and each FILE on a line of its own
  local wanted=$1 code file holds=yes
  shift
  "$SHARDWISE" catalog check >"$folder/out" 2>"$folder/err"
  code=$?
  [[ $code == "$wanted" ]] || holds=no
  for file; do grep -qE "(/|: )$file: " "$folder/err" || holds=no; done
  [[ $(wc -l <"$folder/err") == "$#" ]] || holds=no
  if [[ $holds == yes ]]; then
    passed=$((passed + 1))
  else
    failed=$((failed + 1))
    printf 'exit %s instead of %s with broken %s:\n' "$code" "$wanted" "$*"
    sed 's/^/  /' "$folder/err"
  fi
}
break_file() {
  cp "$SHARDWISE_CATALOG/$1" "$folder/kept"
  printf '{"id": ' >"$SHARDWISE_CATALOG/$1"
}
mend_file() { mv "$folder/kept" "$SHARDWISE_CATALOG/$1"; }

check 0
for file in devices/rtx-4090.json nodes/dgx-h100.json networks/ethernet-100.json \
  models/gpt2.json models/aliases.json frameworks/torchtitan.json prices/launch.json \
  profiles/published.json profiles/spread.json profiles/l40s-roce.json reading/phrases.json \
  reading/sources.json unsupported_frameworks.json operations.json runs/c_microbench.json; do
  [[ -e $SHARDWISE_CATALOG/$file ]] || { echo "there is no $file"; exit 1; }
  break_file "$file"
  check 4 "$file"
  mend_file "$file"
done
break_file operations.json
printf '[' >"$SHARDWISE_CATALOG/profiles/l40s-roce.json"
check 4 operations.json profiles/l40s-roce.json
mend_file operations.json
ln -sf loop.json "$SHARDWISE_CATALOG/devices/loop.json"
check 4 devices/loop.json
printf '%d passed, %d failed\n' "$passed" "$failed"
exit "$((failed > 0))"
