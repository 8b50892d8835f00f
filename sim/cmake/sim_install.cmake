# cmake --install BUILD --prefix P gives
#   P/bin/crest-sim, P/lib/libcrest_sim.so, P/include/crest_sim/   (find_package(crest_sim), target crest_sim::crest_sim)
#   P/lib/crest_sim/libamdhip64.so*                                for LD_LIBRARY_PATH only
include(CMakePackageConfigHelpers)

set_target_properties(crest_sim crest_sim_cli PROPERTIES INSTALL_RPATH "${llvm_libdir}")
install(TARGETS crest_sim EXPORT crest_sim_targets LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(TARGETS crest_sim_cli RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
install(DIRECTORY include/crest_sim DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})

file(MAKE_DIRECTORY ${CMAKE_BINARY_DIR}/install_links)
foreach(name libamdhip64.so libamdhip64.so.6 libamdhip64.so.7)
  file(CREATE_LINK ../libcrest_sim.so ${CMAKE_BINARY_DIR}/install_links/${name} SYMBOLIC)
  install(FILES ${CMAKE_BINARY_DIR}/install_links/${name} DESTINATION ${CMAKE_INSTALL_LIBDIR}/crest_sim)
endforeach()

set(config_dir ${CMAKE_INSTALL_LIBDIR}/cmake/crest_sim)
install(EXPORT crest_sim_targets NAMESPACE crest_sim:: DESTINATION ${config_dir})
file(WRITE ${CMAKE_BINARY_DIR}/crest_simConfig.cmake "include(\${CMAKE_CURRENT_LIST_DIR}/crest_sim_targets.cmake)\n")
write_basic_package_version_file(${CMAKE_BINARY_DIR}/crest_simConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_BINARY_DIR}/crest_simConfig.cmake ${CMAKE_BINARY_DIR}/crest_simConfigVersion.cmake DESTINATION ${config_dir})
