#!/usr/bin/env bash
# The house rules that a compiler does not enforce: which folder includes what, how long files and
# functions may be, which names and markers are refused. Prints every breach and fails on any.
#
#   check.sh [ROOT]        ROOT: the tree to check, by default the one this script is in
set -u
cd "${1:-$(dirname -- "${BASH_SOURCE[0]}")/../..}" || exit 1

# <folder> <folders whose headers it may include>
arrows=(
  'catalog catalog'
  'simulator catalog simulator'
  'planner catalog simulator planner'
  'calibrate catalog calibrate'
  'tests catalog simulator planner calibrate tests'
)

# The same inside simulator/, whose own files (".": plan, workload, clock) all of its folders may
# include. Every folder has a row.
simulator_arrows=(
  '. graphs schedules'
  'schedules schedules'
  'network network'
  'graphs network graphs'
  'memory network graphs memory'
  'costs network graphs memory costs'
  'step network graphs memory costs step'
)

# And inside planner/, whose own files (a question, its facts, words for figures) stand on none of
# its folders. Programs (main.cpp, serve/, sweep/mpi/) come last.
planner_arrows=(
  '.'
  'launch launch'
  'request launch request'
  'choice request choice'
  'forecast request choice forecast'
  'search launch request choice forecast search'
  'advice request choice forecast search advice'
  'answers launch request choice forecast search advice answers'
  'validation choice forecast validation'
  'report launch request choice forecast search advice answers validation report'
  'sweep request choice forecast search answers report sweep'
  'shell launch request search validation shell'
  'commands launch request choice forecast search advice answers validation report sweep shell
    commands'
  'serve report commands serve'
  'sweep/mpi report sweep commands sweep/mpi'
)
planner_program='^planner/main\.cpp$'

# The one exception: `shardwise calibrate` prints what calibrate/ reads and fits.
calibration_command='^planner/(commands/calibrate|report/calibration_)[a-z_]*\.(cpp|hpp)$'

# <third-party headers> | <the only files that may include them>
fences=(
  '^nlohmann/ | ^catalog/json_document\.cpp$|^planner/(report|commands|sweep)/|^tests/'
  '^boost/ | ^simulator/|^tests/'
  '^CLI/ | ^planner/(commands/|main\.cpp$|serve/main\.cpp$|sweep/mpi/main\.cpp$)|^tests/'
  '^httplib\.h | ^planner/serve/bounded_server\.hpp$'
  '^sqlite3\.h | ^planner/sweep/sweep_store\.cpp$'
  '^mpi\.h | ^planner/sweep/mpi/channel\.cpp$'
  '^gperftools/ | ^planner/huge_pages\.cpp$'
  '^Eigen/ | ^calibrate/|^tests/'
  '^yaml-cpp/ | ^planner/launch/yaml_config_reader\.cpp$'
  '^toml\+\+/ | ^planner/launch/toml_config_reader\.cpp$'
  '^(catch2)/ | ^tests/(catch\.hpp|catch_main\.cpp)$'
  '^valijson/ | ^tests/schemas/'
  '^(cuda|cublas|cudnn|nccl|nvml|cub/|thrust/) | ^calibrate/device/'
)

longest_file=500
longest_function=80
longest_line=100
refused_names='util|utils|common|helper|helpers|manager|misc'
refused_markers='TODO|FIXME|XXX|HACK|not implemented'

breaches=0
breach() {
  printf '%s\n' "$*"
  breaches=$((breaches + 1))
}

mapfile -t sources < <(find catalog simulator planner calibrate tests -type f \
  \( -name '*.hpp' -o -name '*.cpp' -o -name '*.cu' -o -name '*.cuh' \) 2>/dev/null | sort)

# "file:line header" of each #include, quoted ones (own) or angled ones (third-party and std).
includes() {
  grep -nHE "^ *# *include *$1" "${sources[@]}" /dev/null |
    sed -E 's/^([^:]+:[0-9]+):[^<"]*[<"]([^>"]*)[>"].*/\1 \2/'
}

check_arrows() {
  local at header folder arrow allowed
  while read -r at header; do
    folder=${at%%/*} allowed=
    for arrow in "${arrows[@]}"; do
      [[ ${arrow%% *} == "$folder" ]] && allowed=${arrow#* }
    done
    [[ $header == calibrate/* && ${at%:*} =~ $calibration_command ]] && continue
    [[ $header == */* && " $allowed " == *" ${header%%/*} "* ]] ||
      breach "$at: $folder/ may not include \"$header\", only: $allowed (as \"folder/file.hpp\")"
  done < <(includes '"')
}

# check_inside <folder> <its rows>: what its folders include of each other.
check_inside() {
  local folder=$1 at header from to arrow allowed
  local -n rows=$2
  while read -r at header; do
    [[ $at == "$folder"/* && $header == "$folder"/*/* ]] || continue
    [[ ${at%:*} =~ $planner_program ]] && continue
    from=${at#"$folder"/} to=${header#"$folder"/} to=${to%/*} allowed='(it has no row here)'
    [[ $from == */* ]] && from=${from%/*} || from=.
    for arrow in "${rows[@]}"; do
      [[ ${arrow%% *} == "$from" ]] && allowed=${arrow#"$from"}
    done
    [[ " ${allowed//$'\n'/ } " == *" $to "* ]] ||
      breach "$at: $folder/$from/ may not include \"$header\", only:$allowed"
  done < <(includes '"')
}

check_fences() {
  local at header fence files
  while read -r at header; do
    for fence in "${fences[@]}"; do
      files=${fence#* | }
      [[ $header =~ ${fence%% | *} && ! ${at%:*} =~ $files ]] &&
        breach "$at: <$header> is allowed only in $files"
    done
  done < <(includes '<')
}

check_names() {
  local file stem
  while read -r file; do
    stem=${file##*/} stem=${stem%%.*}
    [[ $stem =~ (^|_)($refused_names)(_|$) ]] &&
      breach "$file: name the noun that is in it; \"$stem\" says nothing"
    [[ $stem =~ ^[a-z0-9_]+$ ]] || breach "$file: file names are snake_case"
  done < <(printf '%s\n' "${sources[@]}")
}

# A function at namespace level starts in column 0, its signature ends in ") {" or the like, and it
# closes with "}" in column 0: that is how clang-format leaves it. Types (whose own functions are
# indented) and tables are told apart by how they open.
check_lengths() {
  local line
  while read -r line; do breach "$line"; done < <(
    awk -v file_limit="$longest_file" -v function_limit="$longest_function" '
      FNR == 1 { opened = inside_type = 0 }
      FNR == file_limit + 1 { print FILENAME ": longer than " file_limit " lines" }
      /^(struct|class|enum|union)[ {]/ && !/;$/ { inside_type = 1 }
      /\)( const| noexcept)*( -> [^{]*)? [{]$/ && !/\]\(/ {
        if (!opened && !inside_type) opened = FNR
      }
      /^}/ {
        lines = FNR - opened + 1
        if (opened && lines > function_limit)
          print FILENAME ":" opened ": a function of " lines " lines; the limit is " function_limit
        opened = inside_type = 0
      }
    ' "${sources[@]}" /dev/null
  )
}

# Files of a folder may be compiled together (cmake/Unity.cmake), so what is local to a file is
# named once in its folder, or stands in a namespace that bears the file's name. An alias may be
# given twice.
check_local_names() {
  local line
  while read -r line; do breach "$line"; done < <(
    printf '%s\n' "${sources[@]}" | grep '\.cpp$' | grep -vE '^(calibrate/device|tests/bench)/' |
      xargs -r awk '
        FNR == 1 { unnamed = own = raw = 0; folder = FILENAME; sub("/[^/]*$", "", folder) }
        /^namespace [a-z0-9_]+ [{]$/ && !/ shardwise / { own = 1 }
        /^namespace [{]$/ { unnamed = !own }
        /^}  \/\/ namespace$/ { unnamed = 0 }
        /^}  \/\/ namespace [a-z]/ { own = 0 }
        /R"[a-z]*[(]/ { raw = 1 }
        raw { if (/[)][a-z]*"/) raw = 0; if (!/R"/) next }
        !unnamed || /^(using|template|namespace|static_assert)/ || !/^[A-Za-z]/ { next }
        {
          name = $0
          if (!sub(/^(struct|class|union|enum class|enum) /, "", name)) {
            sub(/ *[[({=;].*/, "", name)
            if (name !~ /[ *&>]/) next
            sub(/.*[ *&>]/, "", name)
          }
          sub(/[^A-Za-z0-9_].*/, "", name)
          key = folder "/" name
          if (key in first && first[key] != FILENAME)
            print FILENAME ":" FNR ": local name \"" name "\" is also one of " first[key]
          else
            first[key] = FILENAME
        }
      '
  )
}

check_text() {
  local line
  while read -r line; do breach "$line: leave no markers behind"; done < <(
    grep -nHE "\\b($refused_markers)\\b" "${sources[@]}" /dev/null
  )
  while read -r line; do breach "$line: longer than $longest_line columns"; done < <(
    LC_ALL=C.UTF-8 grep -nHE "^.{$((longest_line + 1)),}" "${sources[@]}" /dev/null |
      sed -E 's/^([^:]+:[0-9]+):.*/\1/'
  )
  while read -r line; do breach "$line: lacks #pragma once"; done < <(
    printf '%s\n' "${sources[@]}" | grep '\.hpp$' | xargs -r grep -L '^#pragma once$'
  )
}

# A reader can open a repository, a paper or a page; a number of somebody's index leads nowhere.
check_sources() {
  local line
  while read -r line; do breach "$line: names a source by a private number"; done < <(
    grep -rnoE '(file|stored) ids? [0-9]{6,}' catalog docs simulator planner calibrate \
      --include='*.json' --include='*.md' --include='*.[ch]pp' --include='*.py' 2>/dev/null
    # Numbers of eleven digits in catalog/ count parameters.
    grep -noHE '(^|[^0-9.,])[0-9]{11}([^0-9]|$)' docs/*.md 2>/dev/null
  )
}

check_arrows
check_inside simulator simulator_arrows
check_inside planner planner_arrows
check_fences
check_names
check_lengths
check_local_names
check_text
check_sources
((breaches == 0)) || printf '%d breaches of the house rules\n' "$breaches"
exit "$((breaches > 0))"
