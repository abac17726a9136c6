# Builds the page in the folder `work` from the folder `source`, on one processor, as other tests run beside.
# Compilers that the environment names are for other builds.
unset(ENV{CXX})
unset(ENV{CXXFLAGS})
foreach(arguments IN ITEMS "-S;${source};--preset;learn;-B;${work}" "--build;${work};--target;learn;--parallel;1")
  execute_process(COMMAND ${CMAKE_COMMAND} ${arguments} COMMAND_ERROR_IS_FATAL ANY)
endforeach()
