# WebAssembly with WASI's system calls, by the clang that web/toolchain/install puts into build/web.
set(CMAKE_SYSTEM_NAME Generic)
set(CMAKE_SYSTEM_PROCESSOR wasm32)
set(ONESTEP_WASM ON)
get_filename_component(ONESTEP_WASM_TOOLS ${CMAKE_CURRENT_LIST_DIR}/../../build/web ABSOLUTE)
if(NOT EXISTS ${ONESTEP_WASM_TOOLS}/bin/clang++)
  message(FATAL_ERROR "there is no compiler for WebAssembly (web/toolchain/install installs one)")
endif()

# The wheel's libc++ is told to do without exceptions, files and threads; runtime.cmake builds one that has them.
set(target "-target wasm32-wasi -mcpu=generic+exception_handling+simd128 -fwasm-exceptions")
# Sizes have 32 bits: what a shape needs is checked where memory is allocated.
set(warnings -Wno-shorten-64-to-32)
set(emulated "-D_WASI_EMULATED_SIGNAL -D_WASI_EMULATED_MMAN -D_WASI_EMULATED_PROCESS_CLOCKS")
set(CMAKE_C_COMPILER ${ONESTEP_WASM_TOOLS}/bin/clang)
set(CMAKE_CXX_COMPILER ${ONESTEP_WASM_TOOLS}/bin/clang++)
set(CMAKE_AR ${ONESTEP_WASM_TOOLS}/bin/ar CACHE FILEPATH "")
set(CMAKE_RANLIB ${ONESTEP_WASM_TOOLS}/bin/ranlib CACHE FILEPATH "")
set(CMAKE_C_FLAGS_INIT "${target} ${emulated}")
set(CMAKE_CXX_FLAGS_INIT "${target} ${emulated} -U_LIBCPP_HAS_FILESYSTEM -D_LIBCPP_HAS_FILESYSTEM=1 \
-U_LIBCPP_HAS_THREADS -D_LIBCPP_HAS_THREADS=1 -D_LIBCPP_HAS_THREAD_API_PTHREAD=1 -D_LIBCPP_ABI_OPTIMIZED_FUNCTION ${warnings}")
# A page waits for every byte; what runs often is optimised for speed in its own library (autograd/CMakeLists.txt). By -Xclang, since
# zig makes -Os of -Oz; with it the level is the compiler's last.
set(CMAKE_C_FLAGS_RELEASE "-DNDEBUG -Oz -Xclang -Oz" CACHE STRING "")
set(CMAKE_CXX_FLAGS_RELEASE "-DNDEBUG -Oz -Xclang -Oz -fno-c++-static-destructors -Xclang -fmerge-functions" CACHE STRING "")
# As C, or zig links its own libc++.
set(CMAKE_CXX_LINK_EXECUTABLE "${CMAKE_CURRENT_LIST_DIR}/link ${target} <CMAKE_CXX_LINK_FLAGS> <LINK_FLAGS> <OBJECTS> -o <TARGET> <LINK_LIBRARIES>")
set(CMAKE_EXECUTABLE_SUFFIX .wasm)
set(CMAKE_EXECUTABLE_SUFFIX_C .wasm)
set(CMAKE_EXECUTABLE_SUFFIX_CXX .wasm)
set(CMAKE_TRY_COMPILE_TARGET_TYPE STATIC_LIBRARY)  # nothing can be linked before the runtime is there

# Of the build machine only its programs.
set(CMAKE_FIND_ROOT_PATH ${ONESTEP_WASM_TOOLS}/headers)
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)
if(EXISTS ${ONESTEP_WASM_TOOLS}/pcre2)
  set(FETCHCONTENT_SOURCE_DIR_PCRE2 ${ONESTEP_WASM_TOOLS}/pcre2 CACHE PATH "")
endif()
