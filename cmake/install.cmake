include(CMakePackageConfigHelpers)

set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/xgrad)

install(TARGETS xgrad EXPORT xgradTargets)
if(XGRAD_BUILD_FILES)
  install(TARGETS xgrad_files EXPORT xgradFilesTargets)
  install(EXPORT xgradFilesTargets NAMESPACE xgrad:: DESTINATION ${package_dir})
  install(DIRECTORY files DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/xgrad FILES_MATCHING PATTERN *.hpp)
  install(FILES files.hpp DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/xgrad)
  install(FILES cmake/FindLibZip.cmake DESTINATION ${package_dir})
endif()
install(DIRECTORY ${core_folders} DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/xgrad FILES_MATCHING PATTERN *.hpp)
install(FILES xgrad.hpp ${include_dir}/xgrad/ops.hpp DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/xgrad)
install(FILES LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR})
install(EXPORT xgradTargets NAMESPACE xgrad:: DESTINATION ${package_dir})

configure_package_config_file(
  cmake/xgradConfig.cmake.in ${PROJECT_BINARY_DIR}/xgradConfig.cmake
  INSTALL_DESTINATION ${package_dir}
  NO_SET_AND_CHECK_MACRO)
write_basic_package_version_file(${PROJECT_BINARY_DIR}/xgradConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/xgradConfig.cmake ${PROJECT_BINARY_DIR}/xgradConfigVersion.cmake
        DESTINATION ${package_dir})
