#!/usr/bin/env bash
# shardwise-calibrate as a person without a GPU meets it: every library's symbols are found, no GPU
# is one line and exit code 4, and the simulated device is measured, resumed and not overwritten.
# Skipped, with a line that says so, where no CUDA toolkit was there to build the program.
set -u
program=$(dirname -- "${SHARDWISE:?the path of the program}")/shardwise-calibrate
if [[ ! -x $program ]]; then
  echo 'shardwise-calibrate is not built: no CUDA toolkit was found'
  exit 77
fi
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
failures=0
fail() {
  echo "$*"
  failures=$((failures + 1))
}

# expect CODE PATTERN ARGUMENT...: one that ends with CODE and says PATTERN.
expect() {
  local code=$1 pattern=$2 said status
  shift 2
  said=$(CUDA_VISIBLE_DEVICES='' "$program" "$@" 2>&1)
  status=$?
  ((status == code)) || fail "$*: expected exit code $code, found $status: $said"
  grep -qE -- "$pattern" <<<"$said" || fail "$*: expected /$pattern/, found: $said"
}

expect 0 'shardwise-calibrate: measures' --help
expect 2 '^shardwise-calibrate: error: --fast: is not an option' --fast
expect 4 '^shardwise-calibrate: error: GPUs: no NVIDIA GPU can be used here: .*import FILE' --list
lines=$(CUDA_VISIBLE_DEVICES='' "$program" 2>&1 | wc -l)
((lines == 1)) || fail "without a GPU: expected one line, found $lines"

# The libraries lie where the toolkit's own do, or the loader knows them.
if compgen -G '/usr/local/cuda/lib64/libcublasLt.so*' >/dev/null; then
  expect 0 'cuBLASLt: complete' --check-libraries
  expect 0 'cuBLAS: complete' --check-libraries
fi
if compgen -G '/usr/local/cuda/lib/libnccl.so*' >/dev/null; then
  expect 0 'NCCL: complete' --check-libraries
fi

file=$folder/m.jsonl
expect 0 'points measured' --simulated-device --only launch --output "$file"
cp "$file" "$folder/before"
expect 2 'exists: --resume goes on' --simulated-device --only launch --output "$file"
expect 0 'points measured' --simulated-device --only launch --output "$file" --resume
cmp -s "$file" "$folder/before" || fail 'resuming what is complete changed the file'
expect 2 'there is no GPU 7' --simulated-device --gpus 7 --output "$folder/other"

# Carried to another machine: nothing but the C library, and no C++ runtime, is needed to start.
if command -v ldd >/dev/null && ldd "$program" | grep -qE 'libstdc\+\+|libcudart|libcublas|libnccl'; then
  fail 'the program needs a library that another machine may not have'
fi
((failures == 0))
