# What `cmake --install` leaves, where a Debian user expects it.
include(CMakePackageConfigHelpers)

# One archive for a C++ user: the public API and the layers under it.
set(api_layers api render lease store source sys core fmt)
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
install(DIRECTORY src/berth/core/ DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/berth/core FILES_MATCHING PATTERN "*.h"
        PATTERN test EXCLUDE)
install(FILES src/berth/api/berth.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/berth)

set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/berth)
set(package_files ${PROJECT_BINARY_DIR}/package)
configure_package_config_file(packaging/cmake/berth-config.cmake.in ${package_files}/berth-config.cmake
                              INSTALL_DESTINATION ${package_dir})
write_basic_package_version_file(${package_files}/berth-config-version.cmake COMPATIBILITY SameMinorVersion)
install(EXPORT berth NAMESPACE berth:: FILE berth-targets.cmake DESTINATION ${package_dir})
install(FILES ${package_files}/berth-config.cmake ${package_files}/berth-config-version.cmake
        DESTINATION ${package_dir})

# The program knows its own options best.
set(generated ${PROJECT_BINARY_DIR}/generated)
function(berth_says file)
  cmake_path(GET file PARENT_PATH directory)
  file(MAKE_DIRECTORY ${generated}/${directory})
  list(JOIN ARGN " " words)
  add_custom_command(OUTPUT ${generated}/${file} DEPENDS berth VERBATIM
                     COMMAND sh -c "\"$1\" ${words} >\"$2\"" sh $<TARGET_FILE:berth> ${generated}/${file})
  set_property(GLOBAL APPEND PROPERTY berth_said ${generated}/${file})
  install(FILES ${generated}/${file} DESTINATION ${directory})
endfunction()
berth_says(share/bash-completion/completions/berth completion bash)
berth_says(share/zsh/vendor-completions/_berth completion zsh)
berth_says(share/fish/vendor_completions.d/berth.fish completion fish)
berth_says(share/man/man1/berth.1.gz __manual | gzip -9n)
function(berth_packs source file)
  cmake_path(GET file PARENT_PATH directory)
  file(MAKE_DIRECTORY ${generated}/${directory})
  add_custom_command(OUTPUT ${generated}/${file} DEPENDS ${source} VERBATIM
                     COMMAND sh -c "gzip -9nc \"$1\" >\"$2\"" sh ${PROJECT_SOURCE_DIR}/${source} ${generated}/${file})
  set_property(GLOBAL APPEND PROPERTY berth_said ${generated}/${file})
  install(FILES ${generated}/${file} DESTINATION ${directory})
endfunction()
berth_packs(docs/berth-sim.1 share/man/man1/berth-sim.1.gz)
berth_packs(CHANGELOG.md ${CMAKE_INSTALL_DOCDIR}/changelog.gz)
get_property(said GLOBAL PROPERTY berth_said)
add_custom_target(berth_said ALL DEPENDS ${said})

install(FILES README.md DESTINATION ${CMAKE_INSTALL_DOCDIR})
install(FILES LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR} RENAME copyright)
install(DIRECTORY docs/ DESTINATION ${CMAKE_INSTALL_DOCDIR} FILES_MATCHING PATTERN "*.md" PATTERN "*.json"
        PATTERN "*.yaml")
# `./dev docs` builds the site, which berth-serve serves under /docs; without it there is none.
install(DIRECTORY ${PROJECT_SOURCE_DIR}/build/docs/ DESTINATION ${CMAKE_INSTALL_DOCDIR}/html OPTIONAL)
install(FILES packaging/deploy/grafana-board.json packaging/deploy/prometheus-rules.yml DESTINATION ${CMAKE_INSTALL_DATADIR}/berth)
install(FILES packaging/cmake/tmpfiles.conf DESTINATION lib/tmpfiles.d RENAME berth.conf)
if(BERTH_SERVE)
  install(TARGETS berth-serve RUNTIME)
  configure_file(packaging/cmake/berth-serve.service ${generated}/berth-serve.service @ONLY)
  install(FILES ${generated}/berth-serve.service DESTINATION lib/systemd/system)
endif()
