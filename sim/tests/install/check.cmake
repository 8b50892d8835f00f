# Installs the build into a folder of its own, builds the project beside this file against it and runs it.
foreach(step
    "${CMAKE_COMMAND};--install;${BUILD};--prefix;${WORK}/prefix"
    "${CMAKE_COMMAND};-S;${CMAKE_CURRENT_LIST_DIR};-B;${WORK}/build;-DCMAKE_PREFIX_PATH=${WORK}/prefix;-DCMAKE_CXX_COMPILER=${CXX}"
    "${CMAKE_COMMAND};--build;${WORK}/build"
    "${CMAKE_COMMAND};-E;env;CREST_SIM_DEVICES=gfx942;${WORK}/build/uses_crest_sim;${OBJECT}"
    "${WORK}/prefix/bin/crest-sim;list;${OBJECT}")
  execute_process(COMMAND ${step} COMMAND_ERROR_IS_FATAL ANY OUTPUT_QUIET)
endforeach()
if(NOT EXISTS ${WORK}/prefix/lib/crest_sim/libamdhip64.so.6)
  message(FATAL_ERROR "the HIP library is not installed under AMD's name")
endif()
