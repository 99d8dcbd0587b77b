# `cpack` in the build folder makes onestep-VERSION-SYSTEM-PROCESSOR.tar.gz and, where dpkg-deb is, onestep_VERSION_ARCHITECTURE.deb.
find_program(ONESTEP_DPKG_DEB dpkg-deb DOC "Makes Debian packages")
find_program(ONESTEP_DPKG_SHLIBDEPS dpkg-shlibdeps DOC "Finds the packages of the shared libraries in use (dpkg-dev)")
mark_as_advanced(ONESTEP_DPKG_DEB ONESTEP_DPKG_SHLIBDEPS)

set(CPACK_GENERATOR TGZ)
if(ONESTEP_DPKG_DEB)
  list(APPEND CPACK_GENERATOR DEB)
endif()
set(CPACK_PACKAGE_VENDOR onestep)
set(CPACK_PACKAGE_CONTACT "the developers of onestep")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY ${PROJECT_DESCRIPTION})
set(CPACK_PACKAGE_DESCRIPTION "The program (onestep train, eval, book, ...) and the C++20 library: headers, static libraries,
a CMake package and a pkg-config file.")
set(CPACK_PACKAGE_FILE_NAME onestep-${PROJECT_VERSION}-${CMAKE_SYSTEM_NAME}-${CMAKE_SYSTEM_PROCESSOR})
set(CPACK_STRIP_FILES ON)

set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION science)
set(CPACK_DEBIAN_PACKAGE_SUGGESTS "g++, cmake, libpcre2-dev, pkg-config")  # to build with the library
if(ONESTEP_DPKG_SHLIBDEPS)
  set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
else()
  set(CPACK_DEBIAN_PACKAGE_DEPENDS "libc6, libgcc-s1, libpcre2-8-0, libstdc++6")
endif()
include(CPack)
