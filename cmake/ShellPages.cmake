# Run as a script (cmake -P): completions and manual pages, written by the program itself.
#
#   -DPROGRAM=... -DFOLDER=...    FOLDER/man1/*.1, FOLDER/completions/<as each shell names it>

function(written_by file)
  execute_process(
    COMMAND "${PROGRAM}" ${ARGN}
    OUTPUT_FILE "${file}"
    COMMAND_ERROR_IS_FATAL ANY
  )
endfunction()

file(REMOVE_RECURSE "${FOLDER}")
file(MAKE_DIRECTORY "${FOLDER}/man1" "${FOLDER}/completions")
written_by("${FOLDER}/completions/shardwise" completion bash)
written_by("${FOLDER}/completions/_shardwise" completion zsh)
written_by("${FOLDER}/completions/shardwise.fish" completion fish)
written_by("${FOLDER}/names" man pages)
file(STRINGS "${FOLDER}/names" pages)
foreach(page IN LISTS pages)
  string(REGEX REPLACE "^shardwise-" "" command "${page}")
  written_by("${FOLDER}/man1/${page}.1" man "${command}")
endforeach()
