#!/usr/bin/env bash
# MODEL may stand before the flags, between them or after them: each flag takes one word.
set -u
[[ -x ${SHARDWISE:-} ]] || exit 77
failed=0
first=$("$SHARDWISE" fit gpt2 --gpus 4090 --method lora --method full --batch 4) || exit 1
for words in "--gpus 4090 gpt2 --method lora --method full --batch 4" \
  "--gpus 4090 --method lora --method full gpt2 --batch 4" \
  "--gpus 4090 --method lora --method full --batch 4 gpt2"; do
  # shellcheck disable=SC2086
  [[ $("$SHARDWISE" fit $words) == "$first" ]] || { echo "fit $words: another answer"; failed=1; }
done
echo "$((failed == 0)) passed, $failed failed"
exit $failed
