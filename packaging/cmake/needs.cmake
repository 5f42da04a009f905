# What the build needs of the system is named together with the line that installs it, before CMake or a compiler
# stumbles over it in its own words. README.md has the same line for the Python package, which has no agent.
set(berth_packages "g++ libfmt-dev nlohmann-json3-dev libtomlplusplus-dev python3-dev python3-venv")
if(BERTH_SERVE)
  string(APPEND berth_packages " libboost1.81-dev libssl-dev zlib1g-dev libsqlite3-dev")
endif()

function(berth_lacks what)
  message(FATAL_ERROR "Berth is built with ${what}, and there is none here. On Debian 12, and on Ubuntu from "
                      "24.04 on, one line installs all that it is built with:\n    sudo apt install ${berth_packages}\n")
endfunction()

# Before project(), which looks for a compiler itself.
function(berth_needs_compiler)
  if(NOT CMAKE_CXX_COMPILER AND NOT DEFINED ENV{CXX})
    find_program(compiler NAMES c++ g++ clang++ NO_CACHE)
    if(NOT compiler)
      berth_lacks("a C++ compiler, g++ 12 or newer")
    endif()
  endif()
endfunction()

function(berth_needs_libraries)
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 12)
    berth_lacks("g++ 12 or newer")
  endif()
  # tools/cross.sh has checked these, of which only the headers are used.
  if(NOT BERTH_CROSS)
    foreach(library IN ITEMS fmt nlohmann_json tomlplusplus)
      find_package(${library} QUIET)
      if(NOT ${library}_FOUND)
        berth_lacks("the library ${library}")
      endif()
    endforeach()
  endif()
  # Linked in: docs/dependencies.md says why.
  find_path(SQLITE_INCLUDE sqlite3.h)
  find_library(SQLITE_LIBRARY libsqlite3.a)
  if(BERTH_SERVE)
    find_package(Boost 1.81 QUIET)
    set(OPENSSL_USE_STATIC_LIBS ${BERTH_CROSS})
    find_package(OpenSSL 3 QUIET)
    set(ZLIB_USE_STATIC_LIBS ON)
    find_package(ZLIB QUIET)
    if(NOT Boost_FOUND OR NOT OPENSSL_FOUND OR NOT ZLIB_FOUND OR NOT SQLITE_INCLUDE OR NOT SQLITE_LIBRARY)
      berth_lacks("Boost 1.81, OpenSSL 3, zlib and SQLite 3 for the agent (not with -DBERTH_SERVE=OFF)")
    endif()
  endif()
endfunction()
