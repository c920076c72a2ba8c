#!/usr/bin/env bash
# check_std_includes.sh must catch what it is for: a header that lacks an include of the standard
# library is named, and one that has it, itself or by an own header, passes.
set -u
check=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd)/check_std_includes.sh
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
mkdir -p "$scratch"/{catalog,calibrate/device}
printf '#pragma once\n#include <map>\n#include "catalog/dtype.hpp"\n' >"$scratch/catalog/gpu.hpp"
printf '#pragma once\n#include <optional>\n' >"$scratch/catalog/dtype.hpp"
passed=0 failed=0

# says EXPECTED LINE: what is said of a header that includes gpu.hpp above and has LINE.
says() {
  local output status=0
  printf '#pragma once\n#include "catalog/gpu.hpp"\n%s\n' "$2" >"$scratch/catalog/node.hpp"
  output=$(bash "$check" "$scratch") || status=1
  if [[ $output == "$1" && $status == $((${#1} > 0)) ]]; then
    passed=$((passed + 1))
  else
    failed=$((failed + 1))
    printf 'FAILED: of "%s" it says "%s"\n' "$2" "$output"
  fi
}

says '' 'std::map<int, std::optional<int>> included_by_own_headers;'
says '' '// a std::vector in a comment'
says 'catalog/node.hpp:3: std::vector is from <vector>: include it' 'std::vector<int> counts;'
says 'catalog/node.hpp:3: std::int64_t is from <cstdint>: include it' 'int64_t count;'
says 'catalog/node.hpp:3: std::regex has no row in this check: which header is it from?' \
  'std::regex word;'
says 'catalog/node.hpp:3: std::deque is from <deque>: include it
catalog/node.hpp:3: std::list is from <list>: include it' 'std::deque<std::list<int>> both;'
printf '#include "catalog/node.hpp"\n' >>"$scratch/catalog/dtype.hpp"  # a cycle comes to an end
says '' 'std::map<int, int> counts;'
printf 'std::vector<int> grid;\n' >"$scratch/calibrate/device/grid.hpp"
says '' ''

printf '%d passed, %d failed\n' "$passed" "$failed"
exit "$((failed > 0))"
