# sim_level_sources(TARGET file...): compiles each file once per x86-64 level. A level's copy lives in the namespace
# crest_sim::level_<level>, so copies never meet in the linker; exec/levels.cpp picks one at run time.
function(sim_level_sources target)
  foreach(level IN LISTS CREST_SIM_ISA_LEVELS)
    add_library(${target}_${level} OBJECT ${ARGN})
    target_link_libraries(${target}_${level} PRIVATE crest_sim_flags)
    target_include_directories(${target}_${level} PRIVATE ${CMAKE_CURRENT_SOURCE_DIR} ${CMAKE_CURRENT_SOURCE_DIR}/../include)
    target_compile_definitions(${target}_${level} PRIVATE CREST_SIM_LEVEL=level_${level})
    target_compile_options(${target}_${level} PRIVATE -march=x86-64-${level} -fvisibility-inlines-hidden -Wno-pass-failed)
    target_sources(${target} PRIVATE $<TARGET_OBJECTS:${target}_${level}>)
    string(TOUPPER ${level} upper)
    target_compile_definitions(${target} PUBLIC CREST_SIM_HAVE_${upper}=1)
  endforeach()
endfunction()
