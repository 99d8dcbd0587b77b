# `cmake --install`: the program (where it is built), the libraries, their headers, the CMake package and a pkg-config file.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

if(ONESTEP_PROGRAM)
  install(TARGETS onestep onestep_page onestep_gradcheck)
  install(DIRECTORY ${PROJECT_SOURCE_DIR}/web/dist/ DESTINATION ${CMAKE_INSTALL_DATADIR}/onestep/web OPTIONAL)
  install(FILES ${PROJECT_BINARY_DIR}/onestep.1 DESTINATION ${CMAKE_INSTALL_MANDIR}/man1 OPTIONAL)
  install(FILES ${PROJECT_BINARY_DIR}/onestep.bash DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions
          RENAME onestep OPTIONAL)
endif()
set(libraries onestep_base onestep_autograd onestep_nn onestep_attention onestep_optim onestep_train)
if(BUILD_SHARED_LIBS)  # the program and the libraries find each other wherever they are moved
  file(RELATIVE_PATH libraries_from_program ${CMAKE_INSTALL_FULL_BINDIR} ${CMAKE_INSTALL_FULL_LIBDIR})
  set_target_properties(${libraries} PROPERTIES INSTALL_RPATH "$ORIGIN")
  if(ONESTEP_PROGRAM)
    set_target_properties(onestep onestep_page onestep_gradcheck PROPERTIES INSTALL_RPATH "$ORIGIN/${libraries_from_program}")
  endif()
endif()
install(TARGETS ${libraries} onestep_all EXPORT onestepTargets
        INCLUDES DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(DIRECTORY ${ONESTEP_INCLUDE_DIR}/onestep DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})

# find_package(onestep): before 1.0 a new minor version may change anything.
set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/onestep)
set(package_files ${PROJECT_BINARY_DIR}/onestepConfig.cmake ${PROJECT_BINARY_DIR}/onestepConfigVersion.cmake
                  ${PROJECT_SOURCE_DIR}/cmake/FindPCRE2.cmake)
configure_package_config_file(${PROJECT_SOURCE_DIR}/cmake/onestepConfig.cmake.in ${PROJECT_BINARY_DIR}/onestepConfig.cmake
                              INSTALL_DESTINATION ${package_dir})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/onestepConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(EXPORT onestepTargets NAMESPACE onestep:: DESTINATION ${package_dir})
install(FILES ${package_files} DESTINATION ${package_dir})

# pkg-config finds the prefix from where its file is, wherever that was moved.
file(RELATIVE_PATH prefix_from_pc ${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig ${CMAKE_INSTALL_PREFIX})
configure_file(${PROJECT_SOURCE_DIR}/cmake/onestep.pc.in ${PROJECT_BINARY_DIR}/onestep.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/onestep.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
