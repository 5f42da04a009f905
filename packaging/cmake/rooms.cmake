# src/PACKAGE/ROOM is a room and a target. An #include names a header as berth/ROOM/HEADER. The compiler finds it through a
# link in the build tree that only the room itself and those that USE it have on their include path, so a wrong include does
# not compile. In another package that path has the room's public headers alone (src/PACKAGE/public.txt).
#
# All presets but `quick` and `each` compile each room as one source, in a third of the time that it takes file by file.
# What a room's sources have to themselves therefore has a name that is its own in the room (tests/names_test.py).
# `each` compiles them one by one and precompiles nothing: each includes what it uses. Compiled alone, GCC 12 takes
# parts of a variant that is moved for uninitialized: there that is a warning, and no error.

# ./dev test sets it. Another compiler, or another way to optimize, may warn of what ours does not: whoever only wants the
# program must not be stopped by that.
option(BERTH_WERROR "A warning of GCC is an error" OFF)
set(berth_werror $<$<AND:$<BOOL:${BERTH_WERROR}>,$<CXX_COMPILER_ID:GNU>>:-Werror>)

add_library(berth_warnings INTERFACE)
# GCC 12 sees overlaps in the string concatenations of its own library where there are none (its bug 105651).
target_compile_options(berth_warnings INTERFACE $<$<CXX_COMPILER_ID:GNU>:-Wno-restrict>
  $<$<COMPILE_LANGUAGE:CXX>:-Wall -Wextra -Wpedantic -Wconversion -Wshadow -Wnon-virtual-dtor -Woverloaded-virtual>
  $<$<COMPILE_LANGUAGE:C>:-Wall -Wextra -Wconversion -Wshadow>
  ${berth_werror})

# What nearly every source reads is read once for all rooms, and once for their tests, which are compiled another way.
# A source includes what it uses all the same: the preset each compiles without this.
option(BERTH_PRECOMPILE "Read the headers of the library once for all sources" ON)
function(berth_precompile target source)
  add_library(${target} OBJECT EXCLUDE_FROM_ALL ${source})
  target_link_libraries(${target} PRIVATE berth_warnings berth_fmt)
  target_precompile_headers(${target} PRIVATE ${ARGN})
  target_compile_options(${target} PRIVATE ${berth_precompiled_options})
endfunction()
# Without the first of each, ccache cannot tell what such a header holds. GCC 12 forgets that what it read so is the
# system's, and warns of what its own library does; the preset each sees these warnings as they are meant.
set(berth_precompiled_options
    "$<$<CXX_COMPILER_ID:GNU>:-fpch-preprocess;-Wno-array-bounds;-Wno-stringop-overread;-Wno-stringop-overflow>"
    "$<$<CXX_COMPILER_ID:Clang>:SHELL:-Xclang -fno-pch-timestamp>")
set(berth_often <algorithm> <chrono> <cstdint> <expected> <functional> <map> <memory> <optional> <ranges> <set>
    <span> <string> <string_view> <utility> <variant> <vector> <fmt/format.h>)

# The headers of a room that other packages may include, by links to them, in a folder of their own.
function(berth_links_public_headers package room root)
  set(list ${PROJECT_SOURCE_DIR}/src/${package}/public.txt)
  set_property(DIRECTORY ${PROJECT_SOURCE_DIR} APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${list})
  file(REMOVE_RECURSE ${root})
  file(MAKE_DIRECTORY ${root}/berth/${room})
  if(NOT EXISTS ${list})
    return()
  endif()
  file(STRINGS ${list} headers REGEX "^${room}/")
  foreach(header IN LISTS headers)
    cmake_path(GET header PARENT_PATH folder)
    file(MAKE_DIRECTORY ${root}/berth/${folder})
    file(CREATE_LINK ${PROJECT_SOURCE_DIR}/src/${package}/${header} ${root}/berth/${header} SYMBOLIC)
  endforeach()
endfunction()

# What a target may include: all that its own package has in these rooms and in those that they use, and of other packages the
# public headers of such rooms. PACKAGE `all`: everything in them, as tests may.
function(berth_sees target package)
  set(rooms ${ARGN})
  foreach(room IN LISTS ARGN)
    string(REPLACE "/" "_" name ${room})
    get_property(below GLOBAL PROPERTY berth_rooms_below_${name})
    list(APPEND rooms ${below})
  endforeach()
  list(REMOVE_DUPLICATES rooms)
  foreach(room IN LISTS rooms)
    string(REPLACE "/" "_" name ${room})
    get_property(of GLOBAL PROPERTY berth_package_of_${name})
    if(package STREQUAL all OR package STREQUAL of)
      target_include_directories(${target} PRIVATE ${PROJECT_BINARY_DIR}/include/${name})
    else()
      target_include_directories(${target} PRIVATE ${PROJECT_BINARY_DIR}/public/${name})
    endif()
  endforeach()
endfunction()

# PACKAGE/ROOM, or a package that is one room.
function(berth_room path)
  cmake_parse_arguments(ROOM "PURE" "" "USES" ${ARGN})
  string(REGEX MATCH "^([a-z]+)/?(.*)$" room ${path})
  set(package ${CMAKE_MATCH_1})
  set(room ${CMAKE_MATCH_2})
  if(NOT room)
    set(room ${package})
  endif()
  string(REPLACE "/" "_" name ${room})
  set(folder ${PROJECT_SOURCE_DIR}/src/${path})
  file(GLOB sources CONFIGURE_DEPENDS ${folder}/*.cpp)
  # The vendors of source, each in a folder of its own. A "model" is a room.
  if(room STREQUAL source)
    file(GLOB vendors CONFIGURE_DEPENDS ${folder}/*/*.cpp)
    list(FILTER vendors EXCLUDE REGEX "/test/")
    list(APPEND sources ${vendors})
  endif()
  set(root ${PROJECT_BINARY_DIR}/include/${name})
  cmake_path(GET room PARENT_PATH parent)
  file(MAKE_DIRECTORY ${root}/berth/${parent})
  file(CREATE_LINK ${folder} ${root}/berth/${room} SYMBOLIC)
  berth_links_public_headers(${package} ${room} ${PROJECT_BINARY_DIR}/public/${name})
  set_property(GLOBAL PROPERTY berth_package_of_${name} ${package})
  set_property(GLOBAL APPEND PROPERTY berth_rooms ${room})
  set(below ${ROOM_USES})
  foreach(used IN LISTS ROOM_USES)
    string(REPLACE "/" "_" used ${used})
    get_property(further GLOBAL PROPERTY berth_rooms_below_${used})
    list(APPEND below ${further})
  endforeach()
  list(REMOVE_DUPLICATES below)
  set_property(GLOBAL PROPERTY berth_rooms_below_${name} ${below})

  if(sources)
    add_library(berth_${name} STATIC ${sources})
    set(scope PUBLIC)
    target_link_libraries(berth_${name} PRIVATE berth_warnings)
    berth_sees(berth_${name} ${package} ${room})
    if(BERTH_PRECOMPILE)
      target_precompile_headers(berth_${name} REUSE_FROM berth_often_read)
      target_compile_options(berth_${name} PRIVATE ${berth_precompiled_options})
    endif()
  else()
    add_library(berth_${name} INTERFACE)
    set(scope INTERFACE)
  endif()
  foreach(used IN LISTS ROOM_USES)
    string(REPLACE "/" "_" used ${used})
    target_link_libraries(berth_${name} ${scope} berth_${used})
  endforeach()
endfunction()

# What only the unit tests need is built where they are wanted: `./dev build debug all unit_tests`.
add_custom_target(unit_tests)

# The unit tests of a room, and of its model: ROOM/test/*_test.cpp, one program a room. What is under test is compiled as the
# preset says. The tests' own code does without what only costs time there: the optimizer in the release build, the
# sanitizers and line numbers in the debug build. All tests of a room are compiled as one source, in less than a third of
# the time that they take one by one: most of it goes to the same templates of the library. So each test has its scenes
# in a namespace of its own, named as its file.
function(berth_compile_test target)
  target_compile_options(${target} PRIVATE "$<$<CONFIG:Release>:-O0;-U_FORTIFY_SOURCE>" "$<$<CONFIG:Debug>:-fno-sanitize=all;-g0>")
  set_target_properties(${target} PROPERTIES UNITY_BUILD_BATCH_SIZE 0 POSITION_INDEPENDENT_CODE OFF)
endfunction()

function(berth_room_test name)
  cmake_parse_arguments(TEST "" "" "USES" ${ARGN})
  get_property(package GLOBAL PROPERTY berth_package_of_${name})
  set(folder ${PROJECT_SOURCE_DIR}/src/${package}/${name})
  if(package STREQUAL name)
    set(folder ${PROJECT_SOURCE_DIR}/src/${package})
  endif()
  file(GLOB sources CONFIGURE_DEPENDS ${folder}/test/*.cpp)
  if(NOT sources)
    return()
  endif()
  add_executable(berth_${name}_test EXCLUDE_FROM_ALL ${sources})
  add_dependencies(unit_tests berth_${name}_test)
  target_link_libraries(berth_${name}_test PRIVATE berth_warnings doctest_main)
  foreach(room ${name} ${name}/model ${TEST_USES})
    string(REPLACE "/" "_" target ${room})
    if(TARGET berth_${target})
      target_link_libraries(berth_${name}_test PRIVATE berth_${target})
      berth_sees(berth_${name}_test all ${room})
    endif()
  endforeach()
  berth_compile_test(berth_${name}_test)
  if(BERTH_PRECOMPILE)
    target_precompile_headers(berth_${name}_test REUSE_FROM berth_often_tested)
    target_compile_options(berth_${name}_test PRIVATE ${berth_precompiled_options})
  endif()
  # Some tests read the sources and the documents.
  target_compile_definitions(berth_${name}_test PRIVATE BERTH_SOURCE_DIR="${PROJECT_SOURCE_DIR}")
  # Some look for the sources beside __FILE__, which is relative to the build directory.
  add_test(NAME ${name} COMMAND berth_${name}_test WORKING_DIRECTORY ${PROJECT_BINARY_DIR})
  set_tests_properties(${name} PROPERTIES LABELS unit)
endfunction()
