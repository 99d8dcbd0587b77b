# The C++ runtime from the sources in the wheel of ziglang, with exceptions, files and a std::thread that cannot start (posix.c).
enable_language(C)
set(cxx ${ONESTEP_WASM_TOOLS}/zig/lib/libcxx)
set(abi ${ONESTEP_WASM_TOOLS}/zig/lib/libcxxabi)
set(unwind ${ONESTEP_WASM_TOOLS}/zig/lib/libunwind)
file(GLOB runtime_sources ${cxx}/src/*.cpp ${cxx}/src/ryu/*.cpp ${cxx}/src/filesystem/*.cpp ${abi}/src/*.cpp)
list(FILTER runtime_sources EXCLUDE REGEX "/(new|charconv|d2fixed|d2s|int128_builtins|strstream|bind|random_shuffle|pstl|cxa_noexception|cxa_demangle|cxa_thread_atexit)\\.cpp$")
# Streams take every facet of the C locale with them, whatever uses it. Nobody asks for those of money, dates, message catalogues
# and sorting.
list(REMOVE_ITEM runtime_sources ${cxx}/src/locale.cpp)
file(READ ${cxx}/src/locale.cpp locale)
string(REGEX REPLACE "\n  install\\(&make<(std::collate|std::messages|moneypunct|money_get|money_put|time_get|time_put)<[^\n]*" "" locale "${locale}")
file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/runtime/locale.cpp CONTENT "${locale}" @ONLY)
list(APPEND runtime_sources ${PROJECT_BINARY_DIR}/runtime/locale.cpp)
add_library(onestep_runtime STATIC ${runtime_sources} ${unwind}/src/Unwind-wasm.c ${CMAKE_CURRENT_LIST_DIR}/posix.c
  ${CMAKE_CURRENT_LIST_DIR}/charconv.cpp)
set_target_properties(onestep_runtime PROPERTIES CXX_STANDARD 23 CXX_EXTENSIONS OFF)
target_compile_options(onestep_runtime PRIVATE -w -U_LIBCPP_HAS_WIDE_CHARACTERS -D_LIBCPP_HAS_WIDE_CHARACTERS=0)
target_compile_definitions(onestep_runtime PRIVATE
  _LIBCPP_BUILDING_LIBRARY LIBCXX_BUILDING_LIBCXXABI LIBC_NAMESPACE=__llvm_libc_common_utils _LIBCXXABI_BUILDING_LIBRARY
  LIBCXXABI_SILENT_TERMINATE _LIBUNWIND_HIDE_SYMBOLS _LIBUNWIND_HAS_NO_THREADS)
target_include_directories(onestep_runtime PRIVATE ${cxx}/src ${cxx}/libc ${abi}/include ${abi}/src ${unwind}/include)
target_link_libraries(onestep_runtime INTERFACE wasi-emulated-signal wasi-emulated-mman wasi-emulated-process-clocks)
# In front of all that calls them, or the linker takes the C library's.
add_library(onestep_libc OBJECT ${CMAKE_CURRENT_LIST_DIR}/fmaf.c ${CMAKE_CURRENT_LIST_DIR}/vsscanf.c)
target_compile_options(onestep_libc PRIVATE -ffp-contract=off)
add_dependencies(onestep_runtime onestep_libc)
target_link_options(onestep_runtime INTERFACE $<TARGET_OBJECTS:onestep_libc>)
link_libraries(onestep_runtime)
