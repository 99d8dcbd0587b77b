# Debian's packages first (find_package); FetchContent where the system has none.
include(FetchContent)

find_package(OpenMP REQUIRED COMPONENTS CXX)

FetchContent_Declare(nlohmann_json
  URL https://github.com/nlohmann/json/releases/download/v3.11.2/json.tar.xz
  FIND_PACKAGE_ARGS 3.11)
FetchContent_MakeAvailable(nlohmann_json)

if(ONESTEP_PROGRAM)
  FetchContent_Declare(CLI11
    GIT_REPOSITORY https://github.com/CLIUtils/CLI11.git GIT_TAG v2.3.2 GIT_SHALLOW ON
    FIND_PACKAGE_ARGS)
  FetchContent_MakeAvailable(CLI11)
endif()

if(ONESTEP_TESTS)
  FetchContent_Declare(doctest
    GIT_REPOSITORY https://github.com/doctest/doctest.git GIT_TAG v2.4.9 GIT_SHALLOW ON
    FIND_PACKAGE_ARGS)
  FetchContent_MakeAvailable(doctest)
  list(APPEND CMAKE_MODULE_PATH ${doctest_DIR} ${doctest_SOURCE_DIR}/scripts/cmake)
  include(doctest)  # doctest_discover_tests
endif()
