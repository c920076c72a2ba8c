#!/usr/bin/env bash
# Completions and manual pages, held against what --help says: every command and every flag is in
# the manual page and in the completion of every shell, which the shells and groff read without a
# word, and bash and fish complete as a person would expect.
set -u
program=${SHARDWISE:?}
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
passed=0 failed=0

verdict() {  # STATUS WHAT...
  if (($1)); then
    failed=$((failed + 1))
    printf 'FAILED: %s\n' "${*:2}"
  else
    passed=$((passed + 1))
  fi
}

inner_commands() { "$program" "$@" --help | sed -n '/^Subcommands:/,$s/^  \([a-z]\+\) .*/\1/p'; }
flags() { "$program" "$@" --help | sed -n 's/^  \(-[^ ]*\).*/\1/p' | tr ',' '\n'; }

# The part of each shell's script that tells of a command: it must hold the flag.
part_of() {  # SHELL COMMAND...
  local shell=$1 path=${*:2}
  case $shell in
    bash) awk -v at="    '$path')" '$0 == at { getline; print }' "$scratch/bash" ;;
    zsh) sed -n "/^_shardwise_at_${path// /_}() {/,/^}/p" "$scratch/zsh" ;;
    fish) grep -E "__shardwise_at( -n)?${path:+ }$path'" "$scratch/fish" ;;
  esac
}

held() {  # SHELL FLAG, the part on stdin
  case $1-$2 in
    fish---*) grep -qE -e " -l ${2#--}( |\$)" ;;
    fish--*) grep -qE -e " -s ${2#-}( |\$)" ;;
    bash-*) grep -qE -e "[' ]$2[ |]" ;;
    zsh-*) grep -qF -e "$2" ;;
  esac
}

check_command() {  # COMMAND... (none: the program itself)
  local page flag shell command
  page=$("$program" man "${@:1:1}")
  for flag in $(flags "$@"); do
    grep -qF -e "\\fB${flag//-/\\-}\\fR" <<<"$page"
    verdict $? "man ${*:1:1}: $flag"
    for shell in bash zsh fish; do
      part_of "$shell" "$@" | held "$shell" "$flag"
      verdict $? "$shell: $* $flag"
    done
  done
  for command in $(inner_commands "$@"); do
    grep -qE -e "shardwise.*$command" <<<"$page"
    verdict $? "man ${*:1:1}: $command"
    for shell in bash zsh fish; do
      part_of "$shell" "$@" | grep -qw -e "$command"
      verdict $? "$shell: $* $command"
    done
    check_command "$@" "$command"
  done
}

for shell in bash zsh fish; do
  "$program" completion "$shell" >"$scratch/$shell"
  verdict $? "completion $shell"
  if command -v "$shell" >/dev/null; then
    "$shell" -n "$scratch/$shell"
    verdict $? "$shell -n"
  fi
done
check_command
((passed > 400)) # --help was read: some thirty flags of seven commands, four times
verdict $? "only $passed commands and flags were found"

for page in $("$program" man pages); do
  "$program" man "${page#shardwise-}" >"$scratch/$page.1"
  verdict $? "man $page"
  command -v groff >/dev/null || continue
  said=$(groff -man -Tutf8 -ww -z "$scratch/$page.1" 2>&1) && [[ -z $said ]]
  verdict $? "groff: $page: $said"
done

# What bash offers for a line with the cursor at its end, a word per line.
offered() {
  bash -c 'source "$1"; compopt() { :; }
    COMP_LINE=$2 COMP_POINT=${#2} COMP_WORDBREAKS="$3"; _shardwise
    printf "%s\n" "${COMPREPLY[@]}"' - "$scratch/bash" "${1/#shardwise/$program}" \
    $' \t\n"\'><=;|&(:'
}
fish_offered() {
  fish --no-config -c "source $scratch/fish; complete -C $(printf %q "$1")" | cut -f1
}

# <line> | <words that must be offered> | <words that must not>
expected=(
  'shardwise f|fit|simulate'
  'shardwise fit --me|--method|--gpus'
  'shardwise fit 8b --method q|qlora|full'
  'shardwise fit 8b --method=q|qlora|full'
  'shardwise fit llama-3.1-|llama-3.1-8b llama-3.1-70b|gpt2'
  'shardwise fit 8b --gpus 2xRTX-30|2xrtx-3090|2xrtx-4090'
  'shardwise fit 8b --framework torcht|torchtitan torchtune|megatron-lm'
  'shardwise launch 8b --target deep|deepspeed|axolotl'
  'shardwise catalog l|list|show'
  'shardwise catalog list n|nodes networks|gpus'
  'shardwise catalog show a100-sxm|a100-sxm4-80gb|h100-sxm'
  'shardwise calibrate |import diff|fit'
  'shardwise calibrate import --peer-access |yes no|'
  'shardwise serve --p|--port|--host'
)
for row in "${expected[@]}"; do
  IFS='|' read -r line words others <<<"$row"
  for shell in bash fish; do
    command -v "$shell" >/dev/null || continue
    if [[ $shell == bash ]]; then
      found=$(offered "$line")
    else
      # fish offers what holds the word anywhere, and for --method=q the flag as well
      PATH=$(dirname "$program"):$PATH
      found=$(fish_offered "$line" | sed 's/^--[a-z-]*=//')
    fi
    for word in $words; do
      grep -qxF -e "$word" <<<"$found"
      verdict $? "$shell: \"$line\" offers $word"
    done
    for word in $others; do
      ! grep -qxF -e "$word" <<<"$found"
      verdict $? "$shell: \"$line\" does not offer $word"
    done
  done
done

# bash sees only what stands behind the last '=' as the word.
[[ $(offered 'shardwise simulate 8b --plan dp=8,zer') == '8,zero=' ]]
verdict $? 'bash: the keys of a plan'
[[ $(offered 'shardwise simulate 8b --plan dp=8,schedule=zb-h') == zb-h1 ]]
verdict $? 'bash: the values of a plan'

said=$("$program" completion zhs 2>&1)
(($? == 2)) && [[ $said == *'did you mean zsh?'* ]]
verdict $? 'completion zhs'

printf '%d passed, %d failed\n' "$passed" "$failed"
exit "$((failed > 0))"
