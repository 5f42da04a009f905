# What `cmake --install` leaves, where a Debian user expects it.
# An archive that was made for zig's libc++ would be of no use to a C++ user.
if(NOT BERTH_CROSS)
  include(packaging/cmake/library.cmake)
endif()

install(TARGETS berth RUNTIME)

# The program knows its own options best. One for another kind of machine cannot be asked: then BERTH_NATIVE is the same one
# for this machine.
if(NOT BERTH_NATIVE)
  set(BERTH_NATIVE $<TARGET_FILE:berth>)
endif()
set(generated ${PROJECT_BINARY_DIR}/generated)
function(berth_installs_page file)
  cmake_path(GET file PARENT_PATH directory)
  set_property(GLOBAL APPEND PROPERTY berth_said ${generated}/${file})
  install(FILES ${generated}/${file} DESTINATION ${directory})
  if(SKBUILD)
    install(FILES ${generated}/${file} DESTINATION ${SKBUILD_DATA_DIR}/${directory} COMPONENT python EXCLUDE_FROM_ALL)
  endif()
endfunction()
function(berth_says file)
  cmake_path(GET file PARENT_PATH directory)
  file(MAKE_DIRECTORY ${generated}/${directory})
  list(JOIN ARGN " " words)
  add_custom_command(OUTPUT ${generated}/${file} DEPENDS berth VERBATIM
                     COMMAND sh -c "\"$1\" ${words} >\"$2\"" sh ${BERTH_NATIVE} ${generated}/${file})
  berth_installs_page(${file})
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
  berth_installs_page(${file})
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
