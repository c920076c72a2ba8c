#!/usr/bin/env bash
# Each header includes, itself or by one of ours, what it names of the standard library. The release
# preset precompiles much of that for the header tests (cmake/HeaderTests.cmake), so the compiler does
# not tell there. A name without a row below is refused as well.
#
#   check_std_includes.sh [ROOT]        ROOT: the tree to check, by default the one of this script
set -u
cd "${1:-$(dirname -- "${BASH_SOURCE[0]}")/../..}" || exit 1

# <header that gives them, or several of which one is enough: a|b> <names>
rows=(
  'algorithm any_of clamp find lower_bound max min min_element nth_element partition pop_heap
    push_heap search sort stable_sort upper_bound'
  'algorithm|utility move_backward'
  'array array'
  'atomic atomic'
  'bit bit_cast bit_width countr_zero'
  'chrono chrono'
  'cmath ceil llround'
  'concepts integral'
  'condition_variable condition_variable'
  'cstddef|array|span|string|string_view|vector ptrdiff_t size_t'
  'cstdint int32_t int64_t uint8_t uint16_t uint32_t uint64_t'
  'cstdlib aligned_alloc atoi free getenv'
  'deque deque'
  'exception exception_ptr'
  'filesystem filesystem'
  'functional function greater less'
  'future async future launch'
  'initializer_list initializer_list'
  'iosfwd|ostream ostream'
  'iterator next'
  'limits numeric_limits'
  'list list'
  'map map'
  'memory make_unique shared_ptr unique_ptr'
  'mutex mutex once_flag'
  'new bad_alloc'
  'optional make_optional nullopt nullopt_t optional'
  'semaphore counting_semaphore'
  'set set'
  'span span'
  'stdexcept logic_error'
  'string string to_string'
  'string_view string_view'
  'thread thread'
  'tuple make_tuple tuple'
  'unordered_map unordered_map'
  'utility move pair swap'
  'variant get_if holds_alternative monostate variant'
  'array|tuple|utility|variant get'
  'vector erase_if vector'
)

mapfile -t headers < <(find catalog simulator planner calibrate -name '*.hpp' \
  -not -path 'calibrate/device/*' 2>/dev/null | sort)

# Own headers that a header includes count with what they include.
breaches=$(printf '%s\n' "${rows[@]}" | awk '
  NR == FNR {
    for (word = 1; word <= NF; word++)
      if (word == 1 && /^[^ ]/) given_by = $1
      else source_of[$word] = given_by
    next
  }
  match($0, /^ *# *include *[<"][^>"]*/) {
    name = substr($0, RSTART, RLENGTH)
    sub(/^[^<"]*[<"]/, "", name)
    includes[FILENAME] = includes[FILENAME] " " name
    next
  }
  {
    sub(/\/\/.*/, "")
    while (match($0, /std::[a-z_0-9]+|(^|[^:_A-Za-z0-9])(size_t|u?int[0-9]+_t)/)) {
      name = substr($0, RSTART, RLENGTH)
      $0 = substr($0, RSTART + RLENGTH)
      sub(/^.*[^a-z_0-9]/, "", name)
      if (!((FILENAME, name) in line)) line[FILENAME, name] = FNR
    }
  }

  function mark(file, seen, names, count, i) {
    count = split(includes[file], names, " ")
    for (i = 1; i <= count; i++)
      if (!(names[i] in seen)) {
        seen[names[i]] = 1
        mark(names[i], seen)
      }
  }
  END {
    for (use in line) {
      split(use, part, SUBSEP)
      at = part[1] ":" line[use] ": std::" part[2]
      if (!(part[2] in source_of)) {
        print at " has no row in this check: which header is it from?"
        continue
      }
      delete seen
      mark(part[1], seen)
      there = 0
      count = split(source_of[part[2]], any, "|")
      for (i = 1; i <= count; i++) if (any[i] in seen) there = 1
      if (!there) print at " is from <" source_of[part[2]] ">: include it"
    }
  }
' - "${headers[@]}" /dev/null | sort)
[[ -z $breaches ]] || printf '%s\n' "$breaches"
[[ -z $breaches ]]
