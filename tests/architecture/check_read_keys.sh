#!/usr/bin/env bash
# Whatever the loaders of the catalog take out of its data files is of use: each member that
# catalog/load_*.cpp set is read somewhere in the sources, as .member, ->member or &Type::member, or
# by its own type in a header of the catalog. A word of the same name that is a variable, a function,
# an enumerator or set once more reads nothing. A key that nobody reads is work for whoever writes a
# row, and looks as if a forecast knew it.
#
#   check_read_keys.sh [ROOT]        ROOT: the tree to check, by default the one of this script
set -u
cd "${1:-$(dirname -- "${BASH_SOURCE[0]}")/../..}" || exit 1

# Read by tests alone, which hold a card's other rates against them, and a model's own count against
# what was published.
by_tests='fp16_accumulate_rate|fp8_fp16_accumulate_rate|rate_conflict|exact'

mapfile -t sources < <(find catalog simulator planner calibrate -name '*.[ch]pp' | sort)
awk -v by_tests="^($by_tests)\$" '
  { gsub(/"[^"]*"/, ""); sub(/\/\/.*/, "") }
  FILENAME ~ /^catalog\/load_[a-z_]*\.cpp$/ && match($0, /[a-z_]+[a-z_.]*\.[a-z0-9_]+ =( |$)/) {
    member = substr($0, RSTART, RLENGTH)
    sub(/ =.*/, "", member)
    sub(/.*\./, "", member)
    if (!(member in at)) at[member] = FILENAME ":" FNR
  }
  {
    own = FILENAME ~ /^catalog\/.*\.hpp$/
    line = $0
    last = ""
    while (match(line, /(\.|->|::)?[A-Za-z_][A-Za-z0-9_]*/)) {
      word = substr(line, RSTART, RLENGTH)
      line = substr(line, RSTART + RLENGTH)
      scoped = word ~ /^::/
      named = sub(/^(\.|->|::)/, "", word)
      enumerator = scoped && $0 !~ "&[A-Za-z_:]+::" word "($|[^A-Za-z0-9_])"
      set = line ~ /^( =( |$)|\()/  # or called
      declared = line ~ /^( = |[;,{])/ && last != "return"
      if (!enumerator && (named ? !set : own && !declared && line !~ /^\(/)) ++read[word]
      last = word
    }
  }
  END {
    for (member in at)
      if (!(member in read) && member !~ by_tests) {
        print at[member] ": nothing reads \"" member "\" once it is loaded"
        ++breaches
      }
    exit breaches > 0
  }' "${sources[@]}" | sort
exit "${PIPESTATUS[0]}"
