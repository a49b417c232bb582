# tree-sitter's grammar for Python, as C sources. Debian ships the parser library (ABI 13–14) but no grammar, so the
# sources come from the npm package, whose integrity package-lock.json pins; scripts/setup installs it.
# 0.23.6 is the last release with ABI 14.
find_package(PkgConfig REQUIRED)
pkg_check_modules(TREE_SITTER REQUIRED IMPORTED_TARGET tree-sitter)
set(KW_GRAMMAR_DIR ${PROJECT_SOURCE_DIR}/node_modules/tree-sitter-python/src CACHE PATH "Sources of tree-sitter-python")
if(NOT EXISTS ${KW_GRAMMAR_DIR}/parser.c)
  message(FATAL_ERROR "tree-sitter-python is missing in ${KW_GRAMMAR_DIR}. Run scripts/setup, or: npm ci --ignore-scripts")
endif()
add_library(kw_python_grammar STATIC ${KW_GRAMMAR_DIR}/parser.c ${KW_GRAMMAR_DIR}/scanner.c)
target_include_directories(kw_python_grammar PRIVATE ${KW_GRAMMAR_DIR})
