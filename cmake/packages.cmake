# cpack -G DEB: libxgrad0.2, with the SOVERSION in its name, has the shared libraries, libxgrad-dev what compiles against them;
# libxgrad-mpi0.2 and libxgrad-mpi-dev have the same of xgrad::mpi. A build of static libraries gives what ends in -dev alone.
# The presets `package` and `package-mpi` configure a build for this.
set(CPACK_PACKAGE_VENDOR "the xgrad authors")
set(CPACK_PACKAGE_DIRECTORY ${PROJECT_BINARY_DIR}/packages)
set(CPACK_PACKAGING_INSTALL_PREFIX ${CMAKE_INSTALL_PREFIX})
set(CPACK_VERBATIM_VARIABLES ON)
set(CPACK_STRIP_FILES ON)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_MAINTAINER "the xgrad authors")
set(CPACK_DEBIAN_PACKAGE_GENERATE_SHLIBS ON)
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)

set(about
    "xgrad records a graph while C++ code runs, differentiates it in reverse, and\n\
composes its ops into models that can be trained: attention, encoders, convolutions,\n\
recurrent layers.")

set(CPACK_DEBIAN_RUNTIME_PACKAGE_NAME libxgrad${soversion})
set(CPACK_DEBIAN_RUNTIME_PACKAGE_SECTION libs)
set(CPACK_DEBIAN_RUNTIME_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_RUNTIME_PACKAGE_RECOMMENDS libopenblas0-openmp)
set(CPACK_DEBIAN_RUNTIME_DESCRIPTION "${about}\nThis package has the shared libraries.")

set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_NAME libxgrad-dev)
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_SECTION libdevel)
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_SUGGESTS "cmake, pkg-config")
set(CPACK_DEBIAN_DEVELOPMENT_DESCRIPTION "${about}\n\
This package has the headers, and files for CMake and pkg-config.")

set(CPACK_DEBIAN_MPI_RUNTIME_PACKAGE_NAME libxgrad-mpi${soversion})
set(CPACK_DEBIAN_MPI_RUNTIME_PACKAGE_SECTION libs)
set(CPACK_DEBIAN_MPI_RUNTIME_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_MPI_RUNTIME_PACKAGE_DEPENDS "libxgrad${soversion} (= ${PROJECT_VERSION})")
set(CPACK_DEBIAN_MPI_RUNTIME_DESCRIPTION "${about}\nThis package has the shared library for training on several machines.")

set(CPACK_DEBIAN_MPI_DEVELOPMENT_PACKAGE_NAME libxgrad-mpi-dev)
set(CPACK_DEBIAN_MPI_DEVELOPMENT_PACKAGE_SECTION libdevel)
set(CPACK_DEBIAN_MPI_DEVELOPMENT_DESCRIPTION "${about}\n\
This package has the headers for training on several machines, and files for\n\
CMake and pkg-config.")

set(depends "libxtensor-dev (>= 0.24)")
set(mpi_depends "libxgrad-dev (= ${PROJECT_VERSION})")
set(packages development)
if(TARGET xgrad_mpi)
  list(APPEND packages mpi_development)
endif()
if(BUILD_SHARED_LIBS)
  list(TRANSFORM packages REPLACE development runtime OUTPUT_VARIABLE libraries)
  list(APPEND packages ${libraries})
  string(APPEND depends ", libxgrad${soversion} (= ${PROJECT_VERSION})")
  string(APPEND mpi_depends ", libxgrad-mpi${soversion} (= ${PROJECT_VERSION})")
  set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS_PRIVATE_DIRS ${PROJECT_BINARY_DIR}) # where libxgrad-mpi's own needs are
else()
  if(XGRAD_BLAS)
    string(APPEND depends ", libopenblas-dev")
  endif()
  if(XGRAD_ONEDNN)
    string(APPEND depends ", libdnnl-dev")
  endif()
  if(TARGET xgrad_files)
    string(APPEND depends ", libzip-dev")
  endif()
  if(MPI_CXX_LIBRARIES MATCHES mpich)
    string(APPEND mpi_depends ", libmpich-dev")
  else()
    string(APPEND mpi_depends ", libopenmpi-dev")
  endif()
endif()
set(CPACK_COMPONENTS_ALL ${packages})
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_DEPENDS ${depends})
set(CPACK_DEBIAN_MPI_DEVELOPMENT_PACKAGE_DEPENDS ${mpi_depends})

# Debian looks for the licence of a package under this name.
foreach(component IN LISTS packages)
  string(TOUPPER ${component} upper)
  install(
    FILES LICENSE
    DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/${CPACK_DEBIAN_${upper}_PACKAGE_NAME}
    RENAME copyright
    COMPONENT ${component} EXCLUDE_FROM_ALL)
endforeach()

include(CPack)
