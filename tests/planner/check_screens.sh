#!/usr/bin/env bash
# What a terminal shows first: as much as a screen holds, in words, nothing twice.
set -u
[[ -x ${SHARDWISE:-} ]] || exit 77
cd "$(mktemp -d)" || exit 1
passed=0 failed=0
holds() { # what, condition...
  if "${@:2}"; then
    passed=$((passed + 1))
  else
    failed=$((failed + 1))
    printf 'not so: %s\n' "$1"
    sed 's/^/  /' out | head -40
  fi
}
run() { timeout 120 "$SHARDWISE" "$@" >out 2>&1; }
lines_at_most() { [[ $(wc -l <out) -le $1 ]]; }
has() { grep -qE -- "$1" out; }
has_not() { ! grep -qE -- "$1" out; }
no_line_twice() { [[ -z $(sed -n '/^  collectives/,/^  memory/p' out | sed 's/x [0-9,]*$//' | sort | uniq -d) ]]; }

# 361 models are 18 screens; those that someone asks for by a part of the name are listed whole.
run models --gpus 4090 --method qlora
holds 'models: a screen, the largest first' lines_at_most 26
holds 'models: the largest of each method' has '^  the largest with room to spare: qlora [a-z]'
holds 'models: how many more' has ' smaller ones run as well, [0-9]+ do not fit'
run models 'Llama 3.2' --gpus 4090 --method qlora
holds 'models: a name in any spelling' has '^  llama-3\.2-1b '
holds 'models: all that have the name' has_not 'smaller ones'

# Embedding and head of a sharded model are gathered in the same way: one line.
run simulate 8b --gpus 8xH100-SXM --plan dp=8,zero=3
holds 'simulate: has collectives' has '^  collectives'
holds 'simulate: no collective twice' no_line_twice

# Without a pipeline nothing is a bubble of one: the host's optimizer lets the ranks wait for each other.
printf '{"train_micro_batch_size_per_gpu": 2, "gradient_accumulation_steps": 4, "bf16": {"enabled": true},
"zero_optimization": {"stage": 3, "offload_optimizer": {"device": "cpu"}}}' >ds.json
run simulate 8b --gpus 8xH100-SXM --plan-from ds.json
holds 'simulate: no pipeline, no bubble of one' has_not 'pipeline bubble'
run simulate 8b --gpus 8xH100-SXM --plan pp=8,ga=16 --method pretrain
holds 'simulate: a pipeline has its bubble' has 'pipeline bubble'

# One GPU and several are forecast in different frameworks, which keep states of different widths:
# 2 + 2 + 2 x 2 bytes in bf16, 4 x 4 in fp32.
run fit 8b --gpus 4090 --method full
holds 'fit: what a parameter takes, and where' has 'nearest plan .* in [A-Z].*, 8\.0 bytes per parameter$'
run fit 8b --gpus 2x4090 --method full
holds 'fit: and on two GPUs' has 'nearest plan .* in PyTorch FSDP2.*, 16\.0 bytes per parameter$'

# A length that leaves room does not take the whole card, but for what the allocator gives back.
run fit 8b --gpus 4090 --method qlora --reach
holds 'fit --reach: says the length that leaves room' has 'with room to spare [0-9,]+ tokens'
holds 'fit --reach: what leaves room is not the whole card' \
  has_not 'with room to spare [0-9,]+ tokens: 23\.[0-9] GiB$'

run compare 13b --gpus 8xA100-80GB --framework megatron-lm --plan dp=8,zero=1 --plan tp=8
holds 'compare: verdicts are words' has 'does not fit$'

# A step of two nodes that wait for gradients is longer on half a network, by no more than twice.
step() { run simulate 8b --gpus 16xH100-SXM --method pretrain --plan dp=16,zero=1,ga=1 "$@" --json
  sed -n 's/^ *"expected": \([0-9.e-]*\),*$/\1/p' out | head -1; }
alone=$(step) halved=$(step --network-share 0.5)
holds "simulate: half a network takes longer ($alone, $halved s)" \
  awk -v a="$alone" -v b="$halved" 'BEGIN { exit !(a > 0 && b > a && b < 2 * a) }'
run simulate 8b --gpus 8xH100-SXM --network-share 0.5
holds 'simulate: one machine shares no network' has 'changes nothing here'

run help calibrate import
holds 'help COMMAND is COMMAND --help' has '^Usage: shardwise calibrate import'

run shop 8b --method qlora --samples 10k
holds 'shop: the model by its name' has '^llama-3\.1-8b, qlora, 10,000 sequences'

printf 'torchrun pretrain_gpt.py --num-layers 32 --hidden-size 4096 --ffn-hidden-size 14336
--tensor-model-parallel-size 2 --micro-batch-size 1 --global-batch-size 128 --bf16 --use-distributed-optimizer\n' >train.sh
run simulate --gpus 8xH100-SXM --plan-from train.sh
holds 'Megatron: sizes without a name find one' has '32 layers of width 4,096 the catalog has .*llama-3\.1-8b'
holds 'Megatron: no mixture without experts' has_not 'mixtral'

printf '%d passed, %d failed\n' "$passed" "$failed"
[[ $failed == 0 && $passed -ge 20 ]]
