#!/usr/bin/env bash
# check_read_keys.sh must catch what it is for: a member that a loader sets and nobody reads is
# named.
set -u
check=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd)/check_read_keys.sh
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
mkdir -p "$scratch"/{catalog,simulator,planner,calibrate}
printf 'struct Gpu {\n  int warps = 0;  // warps of one SM\n};\n' >"$scratch/catalog/gpu.hpp"
printf '  gpu.warps = r.integer("warps", 1, 64);\n' >"$scratch/catalog/load_gpu.cpp"
passed=0 failed=0

# says EXPECTED: what is said of the tree as it is.
says() {
  local output status=0
  output=$(bash "$check" "$scratch") || status=1
  if [[ $output == "$1" && $status == $((${#1} > 0)) ]]; then
    passed=$((passed + 1))
  else
    failed=$((failed + 1))
    printf 'FAILED: it says "%s", not "%s"\n' "$output" "$1"
  fi
}

says 'catalog/load_gpu.cpp:1: nothing reads "warps" once it is loaded'
printf '// gpu.warps in a comment\n' >"$scratch/simulator/waves.cpp"
says 'catalog/load_gpu.cpp:1: nothing reads "warps" once it is loaded'
printf 'int warps = 4;\nint waves() { return warps; }\n' >"$scratch/simulator/waves.cpp"
says 'catalog/load_gpu.cpp:1: nothing reads "warps" once it is loaded'
printf 'void widen(Gpu& gpu) { gpu.warps = 64; }\n' >"$scratch/simulator/waves.cpp"
says 'catalog/load_gpu.cpp:1: nothing reads "warps" once it is loaded'
printf 'enum class Unit { warps };\nUnit unit() { return Unit::warps; }\n' >"$scratch/simulator/waves.cpp"
says 'catalog/load_gpu.cpp:1: nothing reads "warps" once it is loaded'
for reads in 'gpu.warps' 'gpu->warps' 'gpu.*&Gpu::warps' 'gpu.warps == 4'; do
  printf 'int waves(Gpu gpu) { return %s; }\n' "$reads" >"$scratch/simulator/waves.cpp"
  says ''
done
rm "$scratch/simulator/waves.cpp"
for reads in 'warps' 'warps + 1' 'most(warps)'; do
  printf 'struct Gpu {\n  int warps = 0;\n  int all() const { return %s; }\n};\n' "$reads" \
    >"$scratch/catalog/gpu.hpp"
  says ''
done

printf '%d passed, %d failed\n' "$passed" "$failed"
exit "$((failed > 0))"
