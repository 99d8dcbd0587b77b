# Debian's packages first (find_package); FetchContent where the system has none.
include(FetchContent)

find_package(Threads REQUIRED)
if(ONESTEP_WASM)
  include(${PROJECT_SOURCE_DIR}/web/toolchain/runtime.cmake)  # of what follows, too
endif()

FetchContent_Declare(nlohmann_json
  URL https://github.com/nlohmann/json/releases/download/v3.11.2/json.tar.xz
  FIND_PACKAGE_ARGS 3.11)
# These count only where PCRE2 itself is built.
set(jit ON)
if(ONESTEP_WASM)
  set(jit OFF)
endif()
set(PCRE2_SUPPORT_JIT ${jit} CACHE BOOL "" FORCE)
set(PCRE2_BUILD_PCRE2GREP OFF CACHE BOOL "" FORCE)
set(PCRE2_BUILD_TESTS OFF CACHE BOOL "" FORCE)
FetchContent_Declare(PCRE2
  GIT_REPOSITORY https://github.com/PCRE2Project/pcre2.git GIT_TAG pcre2-10.42 GIT_SHALLOW ON
  FIND_PACKAGE_ARGS)
FetchContent_MakeAvailable(nlohmann_json PCRE2)
if(NOT TARGET PCRE2::8BIT)
  target_include_directories(pcre2-8-static INTERFACE $<BUILD_INTERFACE:${pcre2_BINARY_DIR}>)  # pcre2.h is generated there
  add_library(PCRE2::8BIT ALIAS pcre2-8-static)
endif()

if(ONESTEP_PROGRAM)
  # FindMPI ends the configuration where mpicxx is there without its headers (Debian's openmpi-bin).
  if(ONESTEP_MPI)
    execute_process(COMMAND mpicxx -E -x c++ -include mpi.h /dev/null RESULT_VARIABLE mpi_status OUTPUT_QUIET ERROR_QUIET)
    if(NOT mpi_status MATCHES "^[1-9]")  # 0, or words where there is none: it may have another name
      find_package(MPI COMPONENTS CXX)
    endif()
  endif()
  FetchContent_Declare(CLI11
    GIT_REPOSITORY https://github.com/CLIUtils/CLI11.git GIT_TAG v2.3.2 GIT_SHALLOW ON
    FIND_PACKAGE_ARGS)
  FetchContent_Declare(httplib
    GIT_REPOSITORY https://github.com/yhirose/cpp-httplib.git GIT_TAG v0.11.4 GIT_SHALLOW ON
    FIND_PACKAGE_ARGS)
  FetchContent_MakeAvailable(CLI11 httplib)
endif()

# xxHash is one header (Debian: libxxhash-dev), used inline; Debian has no CMake package of it.
find_path(XXHASH_INCLUDE_DIR xxhash.h)
if(NOT XXHASH_INCLUDE_DIR)
  FetchContent_Declare(xxhash
    GIT_REPOSITORY https://github.com/Cyan4973/xxHash.git GIT_TAG v0.8.1 GIT_SHALLOW ON
    SOURCE_SUBDIR none)  # only the header: nothing to build
  FetchContent_MakeAvailable(xxhash)
  set(XXHASH_INCLUDE_DIR ${xxhash_SOURCE_DIR})
endif()

if(ONESTEP_TESTS OR ONESTEP_WASM)
  FetchContent_Declare(doctest
    GIT_REPOSITORY https://github.com/doctest/doctest.git GIT_TAG v2.4.9 GIT_SHALLOW ON
    FIND_PACKAGE_ARGS)
  FetchContent_MakeAvailable(doctest)
  list(APPEND CMAKE_MODULE_PATH ${doctest_DIR} ${doctest_SOURCE_DIR}/scripts/cmake)
  include(doctest)  # doctest_discover_tests
endif()
