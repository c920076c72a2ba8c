#!/usr/bin/env bash
# What is installed works from any place: it is installed into one folder, moved to another, asked
# there, and a C++ program that finds it by find_package answers as `shardwise fit --json` does.
set -u
build=$(dirname "${SHARDWISE:?}")
example=${SHARDWISE_SOURCE_DIR:?}/docs/example
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
export LC_ALL=C.UTF-8
. "$(dirname -- "${BASH_SOURCE[0]}")/verdict.sh"
cached() { sed -n "s/^$1:[A-Z]*=//p" "$build/CMakeCache.txt"; }

[[ -e $build/shell_pages/names ]] || exit 77 # not everything was built
cmake --install "$build" --prefix "$scratch/first" >"$scratch/log" 2>&1 || cat "$scratch/log"
mkdir "$scratch/a place" && mv "$scratch/first" "$scratch/a place/moved"
prefix="$scratch/a place/moved"

for file in bin/shardwise share/man/man1/shardwise.1 share/man/man1/shardwise-fit.1 \
  share/bash-completion/completions/shardwise share/zsh/site-functions/_shardwise \
  share/fish/vendor_completions.d/shardwise.fish share/doc/shardwise/README.md \
  share/shardwise/catalog/devices/rtx-3090.json share/shardwise/catalog/runs/SCHEMA.md \
  include/shardwise/planner/answers/fit_answer.hpp; do
  [[ -s $prefix/$file ]]
  verdict $? "$file is installed"
done
! grep -rlF -e "$scratch/first" -e "${SHARDWISE_SOURCE_DIR}" "$prefix/share" "$prefix/lib/cmake"
verdict $? 'no file names the folder that it was built in or installed to'

# An answer, with nothing of this machine's environment.
question=(32b --gpus 2xRTX-3090 --method qlora --seq 4096 --json)
(cd / && env -i "$prefix/bin/shardwise" fit "${question[@]}") >"$scratch/moved.json"
verdict $? 'the moved program answers'
"$SHARDWISE" fit "${question[@]}" | cmp -s - "$scratch/moved.json"
verdict $? 'it answers as the program of the build tree'
env -i "$prefix/bin/shardwise" catalog check >/dev/null
verdict $? 'its catalog is whole'

cmake -S "$example" -B "$scratch/example" -DCMAKE_PREFIX_PATH="$prefix" \
  -DCMAKE_BUILD_TYPE="$(cached CMAKE_BUILD_TYPE)" -DCMAKE_CXX_FLAGS="$(cached CMAKE_CXX_FLAGS)" \
  -DCMAKE_CXX_COMPILER="$(cached CMAKE_CXX_COMPILER)" >"$scratch/log" 2>&1 &&
  cmake --build "$scratch/example" >>"$scratch/log" 2>&1
verdict $? "the example builds: $(tail -n 3 "$scratch/log")"
said=$("$scratch/example/fit_my_box")
expected=$(
  python3 - "$scratch/moved.json" <<'PYTHON'
import json, sys

for answer in json.load(open(sys.argv[1]))["answers"]:
    seconds = answer["step_time_s"]["expected"]
    print(f'{answer["gpu"]} {answer["verdict"]}, a step takes {seconds:.6g} s')
PYTHON
)
[[ $said == "$expected" && $said == *' s' ]]
verdict $? "the example says \"$said\", shardwise fit --json \"$expected\""

printf '%d passed, %d failed\n' "$passed" "$failed"
exit "$((failed > 0))"
