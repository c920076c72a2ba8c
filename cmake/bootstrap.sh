# Sourced by ./shardwise and ./tests/run: from a bare Debian or Ubuntu machine to a built program.
# Speaks on stderr only. A function that fails has said why in one line and returns the exit code.

# <package> <what the build looks for: a command, a file, a header as <name>, or one of several: a|b>
readonly build_needs=(
  'g++ g++'
  'cmake cmake'
  'ninja-build ninja'
  'libboost-dev <boost/graph/adjacency_list.hpp>'
  'libeigen3-dev <eigen3/Eigen/Core>'
  'libcli11-dev <CLI/App.hpp>'
  'nlohmann-json3-dev <nlohmann/json.hpp>'
  'rapidjson-dev <rapidjson/reader.h>'
  'libyaml-cpp-dev <yaml-cpp/yaml.h>'
  'libtomlplusplus-dev <toml++/toml.h>'
  'libcpp-httplib-dev <httplib.h>'
  'libsqlite3-dev <sqlite3.h>'
  'libjs-chart.js /usr/share/javascript/chart.js/chart.min.js|/usr/share/javascript/chart.js/Chart.min.js'
)
readonly oldest_cmake=3.25

# An allocator for many threads (cmake/Allocator.cmake); the program does without it.
install_allocator() {
  install_packages 'libgoogle-perftools-dev <gperftools/tcmalloc.h>' ||
    say 'without tcmalloc: searches take half as long again'
}

say() { printf 'shardwise: %s\n' "$*" >&2; }

# is_there WHAT: by looking for the thing itself, as it may not come from a package.
is_there() {
  case $1 in
    *'|'*) is_there "${1%%|*}" || is_there "${1#*|}" ;;
    /*) [[ -e $1 ]] ;;
    '<'*) printf '#include %s\n' "$1" | g++ -std=c++20 -M -x c++ - >/dev/null 2>&1 ;;
    *) command -v "$1" >/dev/null ;;
  esac
}

# missing_packages "PACKAGE WHAT"...: prints the packages whose thing is not there.
missing_packages() {
  local need
  for need in "$@"; do
    is_there "${need#* }" || printf '%s\n' "${need%% *}"
  done
}

# install_packages "PACKAGE WHAT"...: installs what is missing. Returns 4 when something still is.
install_packages() {
  local missing as_root=() log status
  mapfile -t missing < <(missing_packages "$@")
  ((${#missing[@]})) || return 0
  if ! command -v apt-get >/dev/null; then
    say "error: these are needed and there is no apt-get to install them: ${missing[*]}"
    return 4
  fi
  if ((EUID != 0)); then
    as_root=(sudo)
    [[ -t 0 ]] || as_root=(sudo -n)
    if ! command -v sudo >/dev/null; then
      say "error: as root, please: apt-get install ${missing[*]}"
      return 4
    fi
  fi

  say "installing ${missing[*]} (once)"
  log=$(mktemp)
  local apt=("${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -q -y
    -o DPkg::Lock::Timeout=300)
  {
    "${apt[@]}" update
    "${apt[@]}" install --no-install-recommends "${missing[@]}"
  } >"$log" 2>&1 </dev/null
  mapfile -t missing < <(missing_packages "$@")
  status=0
  if ((${#missing[@]})); then
    say "error: could not install ${missing[*]}: $(grep '^[EW]: ' "$log" | tail -n 1)"
    status=4
  fi
  rm -f "$log"
  return "$status"
}

check_cmake_version() {
  local found
  found=$(cmake --version | sed -n '1s/[^0-9]*//p')
  if [[ $(printf '%s\n' "$oldest_cmake" "$found" | sort -V | head -n 1) != "$oldest_cmake" ]]; then
    say "error: cmake $oldest_cmake or newer is needed (Debian 12 and Ubuntu 24.04 have it), found" \
      "$found; pip install cmake brings one"
    return 4
  fi
}

# install_build_needs "PACKAGE WHAT"...: what a build needs. A cmake that is there and too old is
# told before anything is installed.
install_build_needs() {
  if is_there cmake; then check_cmake_version || return; fi
  install_packages "$@" && check_cmake_version
}

# configure ROOT PRESET [ARG...]: starts afresh where the build folder is that of another tree.
configure() {
  local root=$1 preset=$2 home log status
  shift 2
  home=$(sed -n 's/^CMAKE_HOME_DIRECTORY:INTERNAL=//p' "$root/build/$preset/CMakeCache.txt" \
    2>/dev/null)
  if [[ -n $home && $home != "$root" ]]; then
    rm -rf "$root/build/$preset"
  fi
  log=$(mktemp)
  (cd "$root" && cmake --preset "$preset" "$@" >"$log" 2>&1)
  status=$?
  if ((status)); then cat "$log" >&2; fi
  rm -f "$log"
  return "$status"
}

# build ROOT PRESET [ARG...]
build() {
  local root=$1 preset=$2
  local -x NINJA_STATUS='shardwise: [%f/%t] '
  shift 2
  (cd "$root" && cmake --build --preset "$preset" "$@" >&2)
}

# As build; but where only warnings stand in the way, which a compiler newer than ours may have more
# of, builds all the same. For those who want to run the program, never for tests.
build_despite_warnings() {
  local root=$1 preset=$2 log status
  log=$(mktemp)
  (set -o pipefail && build "$@" 2>&1 | tee "$log" >&2)
  status=$?
  if ((status)) && grep -q '\[-Werror' "$log" && ! grep 'error:' "$log" | grep -qv '\[-Werror'; then
    say 'warnings stand in the way; building again without -Werror'
    configure "$root" "$preset" --compile-no-warning-as-error && build "$@"
    status=$?
  fi
  rm -f "$log"
  return "$status"
}

# bootstrap_build BUILD ROOT PRESET TARGET [CONFIGURE-ARG...]: configures, then builds with one of
# the two above. The stamp that it leaves is as old as its beginning and names the tree, which is
# how ./shardwise tells that the program is up to date. REQUIRES: ROOT is absolute and physical.
bootstrap_build() {
  local build=$1 root=$2 preset=$3 target=$4 begun
  shift 4
  mkdir -p "$root/build" || return 4
  begun=$(mktemp "$root/build/stamp.XXXXXX") && printf '%s\n' "$root" >"$begun" || return 4
  if ! { configure "$root" "$preset" "$@" && "$build" "$root" "$preset" --target "$target"; }; then
    rm -f "$begun"
    say 'error: the build failed, see above'
    return 70
  fi
  mv "$begun" "$root/build/$preset/shardwise.stamp"
}

# with_lock ROOT PRESET COMMAND...: one process at a time works in a build folder. The command does
# not inherit the lock, so nothing that it leaves running keeps it.
with_lock() {
  local lock=$1/build/$2.lock status
  shift 2
  mkdir -p "${lock%/*}" && exec 9>"$lock" || return 4
  if ! flock -n 9; then
    say 'another process is building; waiting for it'
    flock 9
  fi
  "$@" 9>&-
  status=$?
  exec 9>&-
  return "$status"
}

# bootstrap_program ROOT UP_TO_DATE: a release build of `shardwise` unless UP_TO_DATE, a command,
# says that another process has made one while this one waited for the lock.
bootstrap_program() {
  local root
  root=$(cd -P -- "$1" && pwd) && with_lock "$root" release bootstrap_program_locked "$root" "$2"
}

bootstrap_program_locked() {
  local root=$1 up_to_date=$2
  if "$up_to_date"; then return 0; fi
  install_build_needs "${build_needs[@]}" || return
  install_allocator
  say 'building the program (build/release)'
  bootstrap_build build_despite_warnings "$root" release shardwise
}
