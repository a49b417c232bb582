# Build identity: version, commit count (the total order of builds) and commit, written where C++ can include it.
# Outside a git checkout (a source archive) the count is 0 and the commit "unknown".
find_package(Git QUIET)
set(KW_COMMIT_COUNT 0)
set(KW_COMMIT unknown)
if(GIT_FOUND AND EXISTS ${PROJECT_SOURCE_DIR}/.git)
  execute_process(COMMAND ${GIT_EXECUTABLE} rev-list --count HEAD WORKING_DIRECTORY ${PROJECT_SOURCE_DIR}
                  OUTPUT_VARIABLE count OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET RESULT_VARIABLE failed)
  execute_process(COMMAND ${GIT_EXECUTABLE} rev-parse --short=12 HEAD WORKING_DIRECTORY ${PROJECT_SOURCE_DIR}
                  OUTPUT_VARIABLE commit OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
  if(NOT failed)
    set(KW_COMMIT_COUNT ${count})
    set(KW_COMMIT ${commit})
  endif()
endif()
configure_file(${PROJECT_SOURCE_DIR}/cmake/build_info.h.in ${PROJECT_BINARY_DIR}/generated/kernelwright/build_info.h)
