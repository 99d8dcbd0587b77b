# One library per folder, with the project's language level, floating-point rules and warnings.

# For what is compiled often and runs little (commands, tests, cases, programs for learners): -O1 takes two thirds of the
# compiler's time.
function(onestep_compile_fast target)
  target_compile_options(${target} PRIVATE $<$<CONFIG:Release>:-O1>)
endfunction()

# What GCC may hold before it looks for garbage, in KB, where there is memory for it: it never does, which is a tenth to an
# eighth of its time, and takes a tenth more memory.
cmake_host_system_information(RESULT onestep_memory QUERY TOTAL_PHYSICAL_MEMORY)  # in MiB
cmake_host_system_information(RESULT onestep_cores QUERY NUMBER_OF_LOGICAL_CORES)
math(EXPR onestep_memory "${onestep_memory} / ${onestep_cores}")
set(onestep_compiler_memory)
if(onestep_memory GREATER 3500)
  set(onestep_compiler_memory $<$<CXX_COMPILER_ID:GNU>:--param=ggc-min-heapsize=2000000>)
endif()

# Every target of the project compiles under these rules; nothing leaks to consumers but C++20.
function(onestep_target_rules target)
  target_compile_features(${target} PUBLIC cxx_std_20)
  set_target_properties(${target} PROPERTIES CXX_EXTENSIONS OFF)
  if(NOT ONESTEP_WASM)  # which has no shared libraries
    set_target_properties(${target} PROPERTIES POSITION_INDEPENDENT_CODE ON)
  endif()
  target_include_directories(${target} PRIVATE ${PROJECT_SOURCE_DIR})
  # Fused multiply-adds are written where they are meant: the same bits on every machine.
  target_compile_options(${target} PRIVATE -ffp-contract=off -Wall -Wextra -Wpedantic -Wconversion -Wshadow
                         ${onestep_compiler_memory})
  # Loops over vectors have hints to GCC, and formulas without branches, which choose by & between truth values.
  target_compile_options(${target} PRIVATE
                         $<$<CXX_COMPILER_ID:Clang>:-Wno-unknown-pragmas;-Wno-bitwise-instead-of-logical>)
  target_compile_definitions(${target} PRIVATE $<$<CONFIG:Debug>:_GLIBCXX_ASSERTIONS>)
  if(ONESTEP_WERROR)
    target_compile_options(${target} PRIVATE -Werror)
  endif()
  if(ONESTEP_SANITIZE)
    target_compile_options(${target} PUBLIC -fsanitize=${ONESTEP_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer)
    target_link_options(${target} PUBLIC -fsanitize=${ONESTEP_SANITIZE})
    # With sanitizers GCC sees uninitialised values in std::regex where there are none (its manual warns of that).
    target_compile_options(${target} PRIVATE $<$<CXX_COMPILER_ID:GNU>:-Wno-maybe-uninitialized>)
  endif()
  if(ONESTEP_COVERAGE)
    if(CMAKE_CURRENT_SOURCE_DIR MATCHES "/(autograd|nn|attention)$")
      target_compile_options(${target} PRIVATE --coverage -fprofile-update=atomic)
    endif()
    target_link_options(${target} PUBLIC --coverage)
  endif()
  if(ONESTEP_FUZZ AND CMAKE_CURRENT_SOURCE_DIR MATCHES "/(base|train|fuzz)$")
    # Counts the branches that an input takes: those of what reads files, as counting itself takes half the time.
    target_compile_options(${target} PRIVATE -fsanitize=fuzzer-no-link)
  endif()
endfunction()

# onestep_library(NAME [STATIC] [DEPENDS ...] [RUN_ONCE ...]): builds every .cpp of the current folder (op cases, per-ISA kernels and
# the program have their own targets) as onestep_NAME, alias onestep::NAME. STATIC: a part of the program that is not installed,
# whatever BUILD_SHARED_LIBS says. RUN_ONCE: sources that seldom run or only call others: -O1, as in onestep_compile_fast.
# ALONE: sources that are compiled by themselves.
function(onestep_library name)
  cmake_parse_arguments(ARG "STATIC" "" "DEPENDS;RUN_ONCE;ALONE" ${ARGN})
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/*.cpp)
  list(FILTER sources EXCLUDE REGEX "(\\.cases\\.cpp|\\.isa\\.cpp|/main\\.cpp|/(commands|mpi|programs)/[^/]*)$")
  set(run_once)
  if(ARG_RUN_ONCE)
    file(GLOB run_once CONFIGURE_DEPENDS ${ARG_RUN_ONCE})
    list(REMOVE_ITEM sources ${run_once})
    onestep_unity(run_once ${name}_once 160000)
    set_property(SOURCE ${run_once} APPEND PROPERTY COMPILE_OPTIONS $<$<CONFIG:Release>:-O1>)
  endif()
  list(TRANSFORM ARG_ALONE PREPEND ${CMAKE_CURRENT_SOURCE_DIR}/)
  list(REMOVE_ITEM sources "" ${ARG_ALONE})
  onestep_unity(sources ${name} 160000)
  set(kind)
  if(ARG_STATIC)
    set(kind STATIC)
  endif()
  add_library(onestep_${name} ${kind} ${sources} ${run_once} ${ARG_ALONE})
  add_library(onestep::${name} ALIAS onestep_${name})
  set_target_properties(onestep_${name} PROPERTIES EXPORT_NAME ${name} DEFINE_SYMBOL ""  # shared or not: the same flags
                        VERSION ${onestep_VERSION} SOVERSION ${onestep_VERSION_MAJOR}.${onestep_VERSION_MINOR})
  onestep_target_rules(onestep_${name})
  target_include_directories(onestep_${name} INTERFACE $<BUILD_INTERFACE:${ONESTEP_INCLUDE_DIR}>)
  target_link_libraries(onestep_${name} PUBLIC ${ARG_DEPENDS})
endfunction()
