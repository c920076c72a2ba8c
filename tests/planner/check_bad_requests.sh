#!/usr/bin/env bash
# Every line of bad_requests.txt: one clear error on standard error, its exit code, nothing on
# standard output, no crash, no hang.
set -u
[[ -x ${SHARDWISE:-} ]] || exit 77
corpus=${SHARDWISE_SOURCE_DIR:?}/tests/planner/bad_requests.txt
cd "$(mktemp -d)" || exit 1
passed=0 failed=0
trim() { sed 's/^ *//; s/ *$//' <<<"$1"; }
while IFS='|' read -r code arguments text; do
  code=$(trim "$code") arguments=$(trim "$arguments") text=$(trim "$text")
  read -ra words <<<"$arguments"
  timeout 20 "$SHARDWISE" "${words[@]}" >out 2>err
  got=$?
  if [[ $got == "$code" ]] && grep -qF -- "$text" err && [[ ! -s out ]] &&
    [[ $(wc -l <err) -le 4 ]]; then
    passed=$((passed + 1))
  else
    failed=$((failed + 1))
    printf 'shardwise %s: exit %s (expected %s), wanted "%s" in:\n' "$arguments" "$got" "$code" "$text"
    sed 's/^/  /' err
  fi
done < <(grep -v '^#' "$corpus")
# Request files that are no request.
bad_file() { # name, content, text
  printf '%b' "$2" >"$1"
  timeout 20 "$SHARDWISE" fit --request "$1" >out 2>err
  local got=$?
  if [[ $got == 2 || $got == 4 ]] && grep -qF -- "$3" err && [[ ! -s out ]]; then
    passed=$((passed + 1))
  else
    failed=$((failed + 1))
    printf '%s: exit %s, wanted "%s" in:\n' "$1" "$got" "$3"
    sed 's/^/  /' err
  fi
}
bad_file empty.json '' empty.json
bad_file list.json '[]' list.json
bad_file broken.json '{"model": ' broken.json
bad_file unknown.json '{"model": "8b", "gpus": "4090", "sequense": 5}' sequense
bad_file foreign.json '{"model": "8b", "gpus": "4090", "batch_size": 8}' 'expected batch'
bad_file wrong.json '{"model": "8b", "gpus": "4090", "sequence": "long"}' /sequence
bad_file huge.json '{"model": "8b", "gpus": "4090", "sequence": 1e99}' /sequence
bad_file count.json '{"model": "8b", "gpus": "0x24GB"}' count.json:/gpus
bad_file name.json '{"model": "8c", "gpus": "4090"}' name.json:/model
bad_file row.json '{"model": "8b", "gpus": "4090", "framework": "megatrn"}' row.json:/framework
bad_file twice.json '{"model": "8b", "model": "70b", "gpus": "4090"}' model
bad_file other.json '{"model": "8b", "gpus": "4090", "budget_usd": 5}' budget_usd
bad_file assumed.json '{"model": "8b", "gpus": "4090", "assumed": {"sequense": 5}}' /assumed/sequense
bad_file edited.json '{"model": "8b", "gpus": "4090", "top": 5, "assumed": {"top": 10}}' /top
bad_file rubbish.json '\xff\xfe\x00' rubbish.json
bad_file nan.json '{"model": "8b", "gpus": "4090", "batch": NaN}' nan.json
# Models that are none.
bad_config() { # name, content, text
  printf '%b' "$2" >"$1"
  timeout 20 "$SHARDWISE" fit "./$1" --gpus 4090 >out 2>err
  local got=$?
  if [[ $got == 4 ]] && grep -qF -- "$3" err && [[ ! -s out ]]; then
    passed=$((passed + 1))
  else
    failed=$((failed + 1))
    printf '%s: exit %s, wanted "%s" in:\n' "$1" "$got" "$3"
    sed 's/^/  /' err
  fi
}
good='"model_type":"llama","hidden_size":4096,"num_hidden_layers":32,"vocab_size":32000'
good+=',"intermediate_size":11008,"num_attention_heads":32'
bad_config no-json.json 'layers: 32' no-json.json
bad_config no-object.json '[1, 2]' no-object.json
bad_config nothing.json '' nothing.json
bad_config no-type.json '{}' model_type
bad_config other-type.json '{"model_type": "lama"}' llama
bad_config heads.json "{${good/heads\":32/heads\":33}}" heads
bad_config negative.json "{${good/layers\":32/layers\":-1}}" num_hidden_layers
bad_config absurd.json "{${good/size\":4096/size\":1e30}}" hidden_size
bad_config text.json "{${good/32000/\"many\"}}" vocab_size
bad_config twice.json "{$good,\"vocab_size\":1}" vocab_size
bad_config control.json '{"model_type": "ll\x01ama"}' control.json
printf '%s' "$(printf '[%.0s' {1..5000})" >deep.json
bad_config deep.json "$(<deep.json)" deep.json
head -c 100000000 /dev/zero | tr '\0' '[' >brackets
timeout 20 "$SHARDWISE" fit --request brackets >out 2>err
if [[ $? == 4 && $(wc -l <err) == 1 ]]; then passed=$((passed + 1)); else failed=$((failed + 1)); fi
rm -f brackets
# A folder's file that holds a plan and cannot be read is no other thing that a folder may hold.
mkdir folder
printf '{"zero_optimization": {"stage": 2,,}}' >folder/ds_config.json
printf 'per_device_train_batch_size: 1\n' >folder/sft.yaml
timeout 20 "$SHARDWISE" fit 8b --gpus 4090 --plan-from folder >out 2>err
if [[ $? == 4 && ! -s out ]] && grep -qF ds_config.json err; then
  passed=$((passed + 1))
else
  failed=$((failed + 1))
  echo 'folder with a broken ds_config.json:' && sed 's/^/  /' err
fi
# A value of a plan file is blamed on its file and key, unless a flag says it.
printf 'stage: sft\nfinetuning_type: full\nlora_rank: 8\n' >sft.yaml
for flags in '' '--lora-rank 8'; do
  # shellcheck disable=SC2086
  timeout 20 "$SHARDWISE" simulate 8b --gpus 4090 --plan-from sft.yaml $flags >out 2>err
  if [[ $flags ]]; then wanted='shardwise: --lora-rank: '; else wanted='sft.yaml:3:lora_rank: '; fi
  if [[ ! -s out ]] && grep -qF -- "$wanted" err; then
    passed=$((passed + 1))
  else
    failed=$((failed + 1))
    echo "sft.yaml with \"$flags\": wanted \"$wanted\" in:" && sed 's/^/  /' err
  fi
done
# Lengths that are none, by their line or element.
for case in '5\n\nmany\n|lengths:3: ' '5\n0\n|lengths:2: ' '7 8\n|lengths:1: ' '[5, 1.5]|lengths:/1: ' \
  '[]|lengths: holds no lengths' '\n|lengths: holds no lengths' '[5, -1]|lengths:/1: '; do
  printf '%b' "${case%|*}" >lengths
  timeout 20 "$SHARDWISE" fit 8b --gpus 4090 --lengths lengths >out 2>err
  got=$?
  if [[ $got == 4 && ! -s out ]] && grep -qF -- "${case##*|}" err; then
    passed=$((passed + 1))
  else
    failed=$((failed + 1))
    echo "lengths of \"${case%|*}\": exit $got, wanted \"${case##*|}\" in:" && sed 's/^/  /' err
  fi
done
# A flag wins over the request file, and is blamed then.
timeout 20 "$SHARDWISE" fit --request name.json --gpus 0x24GB >out 2>err
if grep -qF 'shardwise: --gpus: ' err && grep -qF 'name.json:/model: ' err; then
  passed=$((passed + 1))
else
  failed=$((failed + 1))
  echo 'name.json with --gpus:' && sed 's/^/  /' err
fi
# "-" is standard input.
if printf '{"model": "8b", "gpus": "4090", "method": "lora"}' |
  timeout 20 "$SHARDWISE" fit --request - >out 2>err && grep -q 'lora ' out; then
  passed=$((passed + 1))
else
  failed=$((failed + 1))
  echo 'fit --request -' && sed 's/^/  /' err
fi
# A flag that says false is off.
if timeout 20 "$SHARDWISE" fit 8b --gpus 4090 --method lora --fused-loss=false --json >out 2>err &&
  ! grep -q '"fused_loss": *true' out; then
  passed=$((passed + 1))
else
  failed=$((failed + 1))
  echo '--fused-loss=false is on' && sed 's/^/  /' err
fi
printf '%d passed, %d failed\n' "$passed" "$failed"
exit "$((failed > 0))"
