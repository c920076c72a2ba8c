#!/usr/bin/env bash
# An answer that cannot be written ends in one line and exit code 4, a file without a name in exit
# code 2; what stood in the file before stands there still.
set -u
[[ -x ${SHARDWISE:-} ]] || exit 77
folder=$(mktemp -d) || exit 1
trap 'rm -rf "$folder"' EXIT
cd "$folder" || exit 1
passed=0 failed=0
question=(gpt2 --gpus 4090 --method lora)

verdict() {  # verdict WHAT EXIT-CODE EXPECTED TEXT, with standard error in err
  if [[ $2 == "$3" && $(wc -l <err) == 1 ]] && grep -qF -- "$4" err; then
    passed=$((passed + 1))
  else
    failed=$((failed + 1))
    printf '%s: exit %s (expected %s), wanted "%s" in:\n' "$@"
    sed 's/^/  /' err
  fi
}
refused() {  # refused CODE TEXT WORD...
  local code=$1 text=$2
  shift 2
  timeout 20 "$SHARDWISE" "$@" >out 2>err
  verdict "shardwise $*" $? "$code" "$text"
}

mkdir folder
for report in '/dev/full|the disk is full' 'nowhere/x.html|its folder does not exist' \
  'folder|it is a folder'; do
  refused 4 "${report#*|}" fit "${question[@]}" --report "${report%|*}"
  refused 4 "${report#*|}" simulate "${question[@]}" --trace "${report%|*}"
done
refused 4 'cannot be made' launch "${question[@]}" --target accelerate --out /dev/full
refused 4 'cannot be written' catalog pages /dev/full

for words in "fit ${question[*]} --report" "simulate ${question[*]} --trace" \
  "launch ${question[*]} --target accelerate --out" "fit ${question[*]} --request" \
  "calibrate import x.log --out"; do
  # shellcheck disable=SC2086
  refused 2 "${words##* }: is empty" $words ''
done

for words in "fit ${question[*]}" "fit ${question[*]} --json" 'catalog list models' --help \
  --version 'completion bash' 'man fit'; do
  # shellcheck disable=SC2086
  timeout 20 "$SHARDWISE" $words >/dev/full 2>err
  verdict "shardwise $words >/dev/full" $? 4 'standard output cannot be written'
done

# What nobody reads to its end is no error of ours to tell.
timeout 20 "$SHARDWISE" catalog list models 2>err | head -1 >out
if [[ ! -s err && -s out ]]; then passed=$((passed + 1)); else failed=$((failed + 1)); fi

# A page that is written over is the old one or the new one, whole. A file of 4 KiB at the most is
# what a full disk is to a page of some 100.
"$SHARDWISE" fit "${question[@]}" --report page.html >out 2>err
before=$(cksum <page.html)
(
  trap '' XFSZ
  ulimit -f 4
  timeout 20 "$SHARDWISE" fit "${question[@]}" --report page.html >/dev/null 2>err
)
verdict 'a page that does not fit on the disk' $? 4 'page.html: cannot be written'
if [[ $(cksum <page.html) == "$before" && $(ls) == $'err\nfolder\nout\npage.html' ]]; then
  passed=$((passed + 1))
else
  failed=$((failed + 1))
  printf 'the page that was there is gone, or something is left beside it: %s\n' "$(ls)"
fi
printf '%d passed, %d failed\n' "$passed" "$failed"
exit "$((failed > 0))"
