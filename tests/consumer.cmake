# Uses xgrad from an outside project: installed (find_package, pkg_config) or as a folder of it (add_subdirectory,
# configured only).
function(run)
  execute_process(COMMAND ${ARGV} COMMAND_ERROR_IS_FATAL ANY)
endfunction()

file(REMOVE_RECURSE ${work})

if(NOT way STREQUAL "add_subdirectory")
  run(${CMAKE_COMMAND} --install ${xgrad_build} --prefix ${work}/prefix)
endif()

if(way STREQUAL "pkg_config")
  file(GLOB_RECURSE files ${work}/prefix/xgrad-files.pc)
  cmake_path(GET files PARENT_PATH folder)
  set(ENV{PKG_CONFIG_PATH} ${folder}:$ENV{PKG_CONFIG_PATH})
  set(ENV{LD_LIBRARY_PATH} ${folder}/..) # where the libraries are shared
  separate_arguments(options UNIX_COMMAND "${flags}")
  set(programs main:xgrad files:xgrad-files tokenizers:xgrad-tokenizers pretrained:xgrad-pretrained onnx:xgrad-onnx report:xgrad-report)
  if(with_mpi)
    list(APPEND programs mpi:xgrad-mpi)
  endif()
  foreach(program IN LISTS programs)
    string(REGEX REPLACE "(.*):(.*)" "\\1;\\2" program ${program})
    list(POP_BACK program package)
    execute_process(COMMAND ${pkg_config_program} --cflags --libs ${package} OUTPUT_VARIABLE found COMMAND_ERROR_IS_FATAL ANY)
    separate_arguments(found UNIX_COMMAND "${found}")
    run(${compiler} -std=c++20 ${options} ${consumer}/${program}.cpp -o ${work}/${program} ${found})
    run(${work}/${program} WORKING_DIRECTORY ${work})
  endforeach()
  return()
endif()

if(way STREQUAL "find_package")
  set(options -D CMAKE_PREFIX_PATH=${work}/prefix -D with_mpi=${with_mpi})
else()
  set(options -D xgrad_source=${xgrad_source})
endif()

run(${CMAKE_COMMAND} -S ${consumer} -B ${work}/build -G ${generator} -D CMAKE_CXX_COMPILER=${compiler}
    -D CMAKE_BUILD_TYPE=${build_type} -D CMAKE_CXX_FLAGS=${flags} ${options})

if(way STREQUAL "find_package")
  run(${CMAKE_COMMAND} --build ${work}/build)
  run(${work}/build/consumer)
  run(${work}/build/files_consumer WORKING_DIRECTORY ${work})
  run(${work}/build/tokenizers_consumer WORKING_DIRECTORY ${work})
  run(${work}/build/pretrained_consumer)
  run(${work}/build/onnx_consumer)
  run(${work}/build/report_consumer WORKING_DIRECTORY ${work})
  if(with_mpi)
    run(${work}/build/mpi_consumer)
  endif()
endif()
