# Read by CMake right after project() for the binary that is shipped: it looks for its libraries beside itself first. The
# build is otherwise the ordinary one, so that the compiler cache serves both.
add_link_options("LINKER:--disable-new-dtags,-rpath,$ORIGIN/../lib")
