# build/portable/tree: bin/crest with every library but the C library's beside it in lib/.
set_target_properties(crest PROPERTIES INSTALL_RPATH "$ORIGIN/../lib")
# NOTE: DT_RPATH, unlike DT_RUNPATH, also serves the libraries' own dependencies.
target_link_options(crest PRIVATE -Wl,--disable-new-dtags)
install(TARGETS crest RUNTIME_DEPENDENCY_SET portable_libraries RUNTIME DESTINATION bin)
install(RUNTIME_DEPENDENCY_SET portable_libraries
  PRE_EXCLUDE_REGEXES "^ld-linux" "^lib(c|m|dl|rt|pthread|resolv)\\.so"
  LIBRARY DESTINATION lib)
add_custom_target(portable_tree ALL
  COMMAND ${CMAKE_COMMAND} --install ${CMAKE_BINARY_DIR} --prefix ${CMAKE_BINARY_DIR}/tree
  DEPENDS crest COMMENT "Installing the portable tree")
