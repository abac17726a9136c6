# Uses xgrad from an outside project: installed (find_package) or as a folder of it (add_subdirectory, configured only).
function(run)
  execute_process(COMMAND ${ARGV} COMMAND_ERROR_IS_FATAL ANY)
endfunction()

file(REMOVE_RECURSE ${work})

if(way STREQUAL "find_package")
  run(${CMAKE_COMMAND} --install ${xgrad_build} --prefix ${work}/prefix)
  set(options -D CMAKE_PREFIX_PATH=${work}/prefix)
else()
  set(options -D xgrad_source=${xgrad_source})
endif()

run(${CMAKE_COMMAND} -S ${consumer} -B ${work}/build -G ${generator} -D CMAKE_CXX_COMPILER=${compiler}
    -D CMAKE_BUILD_TYPE=${build_type} -D CMAKE_CXX_FLAGS=${flags} ${options})

if(way STREQUAL "find_package")
  run(${CMAKE_COMMAND} --build ${work}/build)
  run(${work}/build/consumer)
  run(${work}/build/files_consumer WORKING_DIRECTORY ${work})
endif()
