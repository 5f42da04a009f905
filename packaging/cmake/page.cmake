# The page of berth-serve: Vite builds web/, and a generated source holds what it built.

# A build without Node would be one without a page, so it is refused.
function(berth_needs_page_tools)
  find_program(BERTH_NODE node HINTS ${PROJECT_SOURCE_DIR}/.node/bin DOC "Node.js, which builds the page")
  set(remedy "\n    ./dev setup\nbrings both, and with -DBERTH_SERVE=OFF neither is needed: then there is no agent.\n")
  if(NOT BERTH_NODE)
    message(FATAL_ERROR "The page of berth-serve is built with Node.js 20.19 or newer, and there is none here.${remedy}")
  endif()
  execute_process(COMMAND ${BERTH_NODE} --version OUTPUT_VARIABLE version OUTPUT_STRIP_TRAILING_WHITESPACE)
  if(NOT version MATCHES "^v([0-9.]+)$" OR CMAKE_MATCH_1 VERSION_LESS 20.19)
    message(FATAL_ERROR "The page of berth-serve is built with Node.js 20.19 or newer; ${BERTH_NODE} says \"${version}\".${remedy}")
  endif()
  if(NOT EXISTS ${PROJECT_SOURCE_DIR}/web/node_modules/vite/bin/vite.js)
    message(FATAL_ERROR "The page of berth-serve is built with packages of npm, which web/node_modules lacks.${remedy}")
  endif()
endfunction()

function(berth_adds_page program)
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/web/src/*)
  list(APPEND sources ${PROJECT_SOURCE_DIR}/web/index.html ${PROJECT_SOURCE_DIR}/web/vite.config.ts
       ${PROJECT_SOURCE_DIR}/web/tsconfig.json ${PROJECT_SOURCE_DIR}/web/package-lock.json)
  set(generated ${PROJECT_BINARY_DIR}/page_files.cpp)
  add_custom_command(
    OUTPUT ${generated} DEPENDS ${sources} VERBATIM COMMENT "Building the page"
    WORKING_DIRECTORY ${PROJECT_SOURCE_DIR}/web
    COMMAND ${CMAKE_COMMAND} -E env BERTH_PAGE_SOURCE=${generated} ${BERTH_NODE} node_modules/vite/bin/vite.js build
            --configLoader runner --logLevel warn --emptyOutDir --outDir ${PROJECT_BINARY_DIR}/page)
  target_sources(${program} PRIVATE ${generated})
endfunction()
