# cmake --install: the libraries (component `runtime` of the packages), and what compiles against them (`development`);
# for xgrad::mpi `mpi_runtime` and `mpi_development`.
include(CMakePackageConfigHelpers)
set(CMAKE_INSTALL_DEFAULT_COMPONENT_NAME development)

set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/xgrad)
set(headers_dir ${CMAKE_INSTALL_INCLUDEDIR}/xgrad)

# PREFIX is that of the components.
function(xgrad_install target export prefix)
  set(CMAKE_INSTALL_DEFAULT_COMPONENT_NAME ${prefix}development)
  install(
    TARGETS ${target} EXPORT ${export}
    LIBRARY COMPONENT ${prefix}runtime NAMELINK_COMPONENT ${prefix}development
    RUNTIME COMPONENT ${prefix}runtime)
  install(EXPORT ${export} NAMESPACE xgrad:: DESTINATION ${package_dir})
endfunction()

# The public headers of folders, what they and those of other libraries include of detail/, and the header that includes them all.
function(xgrad_install_headers umbrella component)
  xgrad_public_headers(headers ${core_folders} ${components})
  xgrad_with_included_headers(headers ${headers})
  list(JOIN ARGN "|" folders)
  foreach(header IN LISTS headers)
    cmake_path(GET header PARENT_PATH folder)
    if(folder MATCHES "^(${folders})(/|$)")
      install(FILES ${header} DESTINATION ${headers_dir}/${folder} COMPONENT ${component})
    endif()
  endforeach()
  install(FILES ${include_dir}/xgrad/${umbrella}.hpp DESTINATION ${headers_dir} COMPONENT ${component})
endfunction()

xgrad_install(xgrad xgradTargets "")
xgrad_install_headers(xgrad development ${core_folders})
install(FILES ${include_dir}/xgrad/ops.hpp DESTINATION ${headers_dir})
if(XGRAD_ONEDNN)
  install(FILES cmake/FindDNNL.cmake DESTINATION ${package_dir})
endif()
foreach(component IN LISTS components)
  set(prefix)
  if(component STREQUAL mpi) # has packages of its own
    set(prefix mpi_)
  endif()
  xgrad_install(xgrad_${component} xgrad_${component}Targets "${prefix}")
  xgrad_install_headers(${component} ${prefix}development ${component})
endforeach()
if(TARGET xgrad_files)
  install(FILES cmake/FindLibZip.cmake DESTINATION ${package_dir})
endif()
install(FILES LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT licence)

configure_package_config_file(
  cmake/xgradConfig.cmake.in ${PROJECT_BINARY_DIR}/xgradConfig.cmake
  INSTALL_DESTINATION ${package_dir}
  NO_SET_AND_CHECK_MACRO)
write_basic_package_version_file(${PROJECT_BINARY_DIR}/xgradConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/xgradConfig.cmake ${PROJECT_BINARY_DIR}/xgradConfigVersion.cmake
        DESTINATION ${package_dir})

# pkg-config's files, relative to where they lie, so that the prefix may move. A static library needs its own libraries
# named among the public ones: `pkg-config --static` would ask for those of which OpenBLAS is made, too, which are not
# installed with it.
function(xgrad_install_pkg_config name library description)
  cmake_parse_arguments(PARSE_ARGV 3 arg "" "COMPONENT" "REQUIRES;STATIC_REQUIRES;STATIC_LIBS")
  set(requires ${arg_REQUIRES})
  set(libs -L\${libdir} -l${library})
  if(NOT BUILD_SHARED_LIBS)
    list(APPEND requires ${arg_STATIC_REQUIRES})
    list(APPEND libs ${arg_STATIC_LIBS})
  endif()
  list(JOIN requires ", " requires)
  list(JOIN libs " " libs)
  file(RELATIVE_PATH prefix ${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig ${CMAKE_INSTALL_PREFIX})
  string(REGEX REPLACE "/$" "" prefix "${prefix}")
  cmake_path(APPEND libdir \${prefix} ${CMAKE_INSTALL_LIBDIR})
  cmake_path(APPEND includedir \${prefix} ${CMAKE_INSTALL_INCLUDEDIR})
  configure_file(cmake/pkg-config.pc.in ${PROJECT_BINARY_DIR}/${name}.pc @ONLY)
  install(FILES ${PROJECT_BINARY_DIR}/${name}.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig COMPONENT ${arg_COMPONENT})
endfunction()

# By their paths: openblas.pc of Debian 13 asks for OpenMP's library, which clang does not bring.
set(blas STATIC_LIBS)
if(XGRAD_BLAS)
  list(APPEND blas ${BLAS_LIBRARIES})
endif()
if(XGRAD_ONEDNN)
  list(APPEND blas ${DNNL_LIBRARY})
endif()
list(APPEND blas ${CMAKE_THREAD_LIBS_INIT})
xgrad_install_pkg_config(xgrad xgrad "${PROJECT_DESCRIPTION}" COMPONENT development REQUIRES xtensor ${blas})
if(TARGET xgrad_files)
  xgrad_install_pkg_config(
    xgrad-files xgrad_files "safetensors, npy, npz and torch files and checkpoints for xgrad"
    COMPONENT development
    REQUIRES "xgrad = ${PROJECT_VERSION}"
    STATIC_REQUIRES libzip)
endif()
if(TARGET xgrad_tokenizers)
  xgrad_install_pkg_config(
    xgrad-tokenizers xgrad_tokenizers "tokenizers of pretrained models, for xgrad"
    COMPONENT development
    REQUIRES "xgrad = ${PROJECT_VERSION}")
endif()
if(TARGET xgrad_pretrained)
  xgrad_install_pkg_config(
    xgrad-pretrained xgrad_pretrained "pretrained encoders and decoders for xgrad"
    COMPONENT development
    REQUIRES "xgrad-files = ${PROJECT_VERSION}" "xgrad-tokenizers = ${PROJECT_VERSION}")
endif()
if(TARGET xgrad_generation)
  xgrad_install_pkg_config(
    xgrad-generation xgrad_generation "texts that decoders write, for xgrad"
    COMPONENT development
    REQUIRES "xgrad-tokenizers = ${PROJECT_VERSION}")
endif()
if(TARGET xgrad_retrieval)
  xgrad_install_pkg_config(
    xgrad-retrieval xgrad_retrieval "search with sentence encoders, for xgrad"
    COMPONENT development
    REQUIRES "xgrad-pretrained = ${PROJECT_VERSION}")
endif()
if(TARGET xgrad_onnx)
  xgrad_install_pkg_config(
    xgrad-onnx xgrad_onnx "ONNX files, as modules that can be trained, for xgrad"
    COMPONENT development
    REQUIRES "xgrad-files = ${PROJECT_VERSION}")
endif()
if(TARGET xgrad_report)
  xgrad_install_pkg_config(
    xgrad-report xgrad_report "reports of training runs as HTML pages, for xgrad"
    COMPONENT development
    REQUIRES "xgrad = ${PROJECT_VERSION}")
endif()
if(TARGET xgrad_mpi)
  xgrad_install_pkg_config(
    xgrad-mpi xgrad_mpi "training on several machines, by MPI, for xgrad"
    COMPONENT mpi_development
    REQUIRES "xgrad = ${PROJECT_VERSION}"
    STATIC_LIBS ${MPI_CXX_LIBRARIES})
endif()
