# What `cmake --install` leaves, where a Debian user expects it.
include(CMakePackageConfigHelpers)

# One archive for a C++ user: the public API and the layers under it.
set(api_layers api lease store source sys core fmt)
foreach(layer IN LISTS api_layers)
  get_target_property(kind berth_${layer} TYPE)
  if(kind STREQUAL "STATIC_LIBRARY")
    list(APPEND api_objects $<TARGET_OBJECTS:berth_${layer}>)
  endif()
endforeach()
add_library(berth_archive STATIC ${api_objects})
set_target_properties(berth_archive PROPERTIES OUTPUT_NAME berth EXPORT_NAME berth LINKER_LANGUAGE CXX)
target_compile_features(berth_archive PUBLIC cxx_std_23)
target_link_libraries(berth_archive PUBLIC ${CMAKE_DL_LIBS})
target_include_directories(berth_archive INTERFACE $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)

install(TARGETS berth RUNTIME)
install(TARGETS berth_archive EXPORT berth ARCHIVE)
install(DIRECTORY core/ DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/berth/core FILES_MATCHING PATTERN "*.h"
        PATTERN test EXCLUDE)
install(FILES api/berth.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/berth)

set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/berth)
set(package_files ${PROJECT_BINARY_DIR}/package)
configure_package_config_file(cmake/berth-config.cmake.in ${package_files}/berth-config.cmake
                              INSTALL_DESTINATION ${package_dir})
write_basic_package_version_file(${package_files}/berth-config-version.cmake COMPATIBILITY SameMinorVersion)
install(EXPORT berth NAMESPACE berth:: FILE berth-targets.cmake DESTINATION ${package_dir})
install(FILES ${package_files}/berth-config.cmake ${package_files}/berth-config-version.cmake
        DESTINATION ${package_dir})

# The program knows its own options best.
set(generated ${PROJECT_BINARY_DIR}/generated)
file(MAKE_DIRECTORY ${generated})
set(bash_script share/bash-completion/completions/berth)
set(zsh_script share/zsh/vendor-completions/_berth)
set(fish_script share/fish/vendor_completions.d/berth.fish)
foreach(shell bash zsh fish)
  set(script ${generated}/${${shell}_script})
  cmake_path(GET script PARENT_PATH directory)
  file(MAKE_DIRECTORY ${directory})
  add_custom_command(OUTPUT ${script} DEPENDS berth VERBATIM
                     COMMAND sh -c "\"$1\" completion ${shell} >\"$2\"" sh $<TARGET_FILE:berth> ${script})
  list(APPEND completions ${script})
endforeach()
add_custom_command(OUTPUT ${generated}/berth.1 DEPENDS berth VERBATIM
                   COMMAND sh -c "\"$1\" __manual >\"$2\"" sh $<TARGET_FILE:berth> ${generated}/berth.1)
add_custom_target(berth_completions ALL DEPENDS ${completions} ${generated}/berth.1)
install(DIRECTORY ${generated}/share/ DESTINATION ${CMAKE_INSTALL_DATADIR})

install(FILES ${generated}/berth.1 DESTINATION ${CMAKE_INSTALL_MANDIR}/man1)
install(FILES README.md CHANGELOG.md LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR})
install(DIRECTORY docs/ DESTINATION ${CMAKE_INSTALL_DOCDIR} FILES_MATCHING PATTERN "*.md" PATTERN "*.json")
install(FILES cmake/tmpfiles.conf DESTINATION lib/tmpfiles.d RENAME berth.conf)
