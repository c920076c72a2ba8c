#!/usr/bin/env bash
# The house rules must catch what they are for: a small clean tree passes, and each breach planted
# in it is named.
set -u
check=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd)/check.sh
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
passed=0 failed=0

clean_tree() {
  rm -rf "${scratch:?}"/*
  mkdir -p "$scratch"/{catalog,simulator/{schedules,graphs,network},calibrate/device,tests/catalog,docs}
  mkdir -p "$scratch"/planner/{commands,forecast,news,request,sweep/mpi}
  printf '#pragma once\n#include <vector>\n' >"$scratch/catalog/gpu.hpp"
  printf '#include "catalog/gpu.hpp"\n#include <boost/x.hpp>\n' >"$scratch/simulator/engine.cpp"
  printf '#include "simulator/engine.hpp"\n#include <CLI/CLI.hpp>\n' >"$scratch/planner/main.cpp"
  printf '#include <cuda_runtime.h>\n' >"$scratch/calibrate/device/timer.cu"
  printf 'namespace shardwise {\nnamespace {\nint once(int n) {\n}\n}  // namespace\n' \
    >"$scratch/planner/advice.cpp"
}

verdict() {  # verdict NAME HOLDS
  if [[ $2 == yes ]]; then
    passed=$((passed + 1))
  else
    failed=$((failed + 1))
    printf 'FAILED: %s\n' "$1"
  fi
}

# refuses EXPECTED FILE TEXT: the tree with TEXT in FILE is refused, naming FILE and EXPECTED.
refuses() {
  local output holds=no
  clean_tree
  printf '%b' "$3" >"$scratch/$2"
  if ! output=$(bash "$check" "$scratch") && [[ $output == *"$2"*"$1"* ]]; then holds=yes; fi
  verdict "$2: $1 (said: $output)" "$holds"
}

accepts() {  # accepts FILE TEXT: the tree with TEXT in FILE passes
  local holds=no
  clean_tree
  printf '%b' "$2" >"$scratch/$1"
  if bash "$check" "$scratch"; then holds=yes; fi
  verdict "$1 passes" "$holds"
}

repeat() { printf "$1%.0s" $(seq "$2"); }

clean_tree
printf '// %s\n' "$(repeat é 97)" >>"$scratch/catalog/gpu.hpp"
if bash "$check" "$scratch"; then holds=yes; else holds=no; fi
verdict 'a clean tree passes' "$holds"

refuses 'catalog/ may not include' catalog/gpu.cpp '#include "simulator/engine.hpp"\n'
refuses 'simulator/ may not include' simulator/schedules/gpipe.cpp \
  '#include "planner/verdict.hpp"\n'
refuses 'simulator/graphs/ may not include' simulator/graphs/mlp_graph.cpp \
  '#include "simulator/step/engine.hpp"\n'
refuses 'simulator/network/ may not include' simulator/network/topology.hpp \
  '#pragma once\n#include "simulator/memory/block_pool.hpp"\n'
refuses 'planner/request/ may not include' planner/request/asked.cpp \
  '#include "planner/forecast/forecast.hpp"\n'
refuses 'planner/sweep/ may not include' planner/sweep/row.cpp \
  '#include "planner/commands/sweep.hpp"\n'
refuses 'planner/./ may not include' planner/facts.hpp \
  '#pragma once\n#include "planner/request/request.hpp"\n'
refuses 'planner/news/ may not include' planner/news/paper.cpp \
  '#include "planner/news/paper.hpp"\n'
accepts planner/forecast/forecast.cpp '#include "planner/request/request.hpp"\n'
accepts planner/sweep/mpi/main.cpp '#include "planner/commands/sweep.hpp"\n'
accepts planner/main.cpp '#include "planner/commands/fit.hpp"\n'
refuses 'planner/ may not include' planner/commands/fit.cpp '#include "calibrate/fit.hpp"\n'
refuses 'calibrate/ may not include' calibrate/fit.cpp '#include "simulator/engine.hpp"\n'
refuses 'catalog/ may not include' catalog/gpu.cpp '#include "gpu.hpp"\n'
refuses 'by a private number' catalog/gpu.json '{"source": "text, stored file id 123456789"}\n'
refuses 'by a private number' simulator/engine.cpp '// measured (stored file id 123456789)\n'
refuses 'by a private number' docs/page.md 'texts (one) and 12345678901 (another)\n'
accepts catalog/gpu.json '{"source": "text in a public repo, profile ids 1 and 2"}\n'
refuses '<nlohmann/json.hpp> is allowed only' simulator/engine.cpp '#include <nlohmann/json.hpp>\n'
refuses '<nlohmann/json.hpp> is allowed only' catalog/gpu.hpp \
  '#pragma once\n#include <nlohmann/json.hpp>\n'
refuses '<boost/x.hpp> is allowed only' planner/search.cpp '#include <boost/x.hpp>\n'
refuses '<CLI/CLI.hpp> is allowed only' catalog/load.cpp '  #  include <CLI/CLI.hpp>\n'
refuses '<Eigen/Core> is allowed only' simulator/engine.cpp '#include <Eigen/Core>\n'
refuses '<cuda_runtime.h> is allowed only' calibrate/fit.cpp '#include <cuda_runtime.h>\n'
refuses '<nccl.h> is allowed only' planner/main.cpp '#include <nccl.h>\n'
refuses 'longer than 500 lines' simulator/engine.cpp "$(repeat '\\n' 501)"
refuses 'a function of 81 lines' simulator/engine.cpp \
  "int f(int a,\n    int b) {\n$(repeat '  x();\\n' 79)}\n"
refuses 'says nothing' catalog/string_utils.cpp '\n'
refuses 'says nothing' planner/helpers.hpp '#pragma once\n'
refuses 'snake_case' planner/PlanSpace.cpp '\n'
refuses 'local name "once" is also' planner/verdict.cpp \
  'namespace {\nstd::array<int, 2> once{1, 2};\n}  // namespace\n'
refuses 'local name "once" is also' planner/verdict.cpp \
  'namespace {\nstruct once {\n};\n}  // namespace\n'
accepts planner/verdict.cpp 'namespace verdict {\nnamespace {\nint once;\n}  // namespace\n}\n'
accepts planner/verdict.cpp 'namespace {\n}  // namespace\nint once();\n'
refuses 'leave no markers' planner/search.cpp "// TO""DO: later\n"
refuses 'longer than 100 columns' planner/search.cpp "// $(repeat x 98)\n"
refuses 'lacks #pragma once' planner/search.hpp '\n'

printf '%d passed, %d failed\n' "$passed" "$failed"
exit "$((failed > 0))"
