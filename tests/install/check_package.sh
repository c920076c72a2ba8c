#!/usr/bin/env bash
# The Debian packages: what they depend on, and that the program runs from where one was unpacked.
# Exit code 77 (skipped) where there is no cpack or dpkg.
set -u
build=$(dirname "${SHARDWISE:?}")
command -v cpack >/dev/null && command -v dpkg-shlibdeps >/dev/null || exit 77
[[ -e $build/shell_pages/names ]] || exit 77 # not everything was built
grep -q '^CMAKE_BUILD_TYPE:[A-Z]*=Release$' "$build/CMakeCache.txt" || exit 77
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
. "$(dirname -- "${BASH_SOURCE[0]}")/verdict.sh"

# The program's package alone: that of the libraries is the same work over, and half a minute.
(cd "$build" && cpack -B "$scratch/packages" -D CPACK_COMPONENTS_ALL=runtime) >"$scratch/log" 2>&1
verdict $? "cpack: $(tail -n 3 "$scratch/log")"
package=$(echo "$scratch"/packages/shardwise_*.deb)
depends=$(dpkg-deb -f "$package" Depends)
grep -q 'libc6 (>= ' <<<"$depends" && grep -q 'libstdc++6 (>= ' <<<"$depends"
verdict $? "shardwise depends on the libraries that it is linked with: $depends"
if ldd "$build/shardwise-serve" 2>/dev/null | grep -q libcpp-httplib; then
  grep -q 'libcpp-httplib' <<<"$depends"
  verdict $? "and on that of shardwise-serve: $depends"
fi

dpkg-deb -x "$package" "$scratch/root"
for file in share/man/man1/shardwise.1 share/doc/shardwise/copyright \
  share/zsh/vendor-completions/_shardwise share/shardwise/catalog/models/aliases.json; do
  [[ -s $scratch/root/usr/$file ]]
  verdict $? "$file is in the package"
done
[[ ! -e $scratch/root/usr/include ]]
verdict $? 'headers are not'
"$SHARDWISE" fit 70b --gpus 6x24GB >"$scratch/here" 2>&1
(cd / && env -i "$scratch/root/usr/bin/shardwise" fit 70b --gpus 6x24GB) >"$scratch/there" 2>&1
cmp -s "$scratch/here" "$scratch/there"
verdict $? 'the unpacked program answers as that of the build tree'

printf '%d passed, %d failed\n' "$passed" "$failed"
exit "$((failed > 0))"
