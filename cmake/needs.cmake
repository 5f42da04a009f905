# What the build needs of the system is named together with the line that installs it, before CMake or a compiler
# stumbles over it in its own words. README.md has the same line.
set(berth_packages "g++ libfmt-dev nlohmann-json3-dev libtomlplusplus-dev python3-dev python3-venv")

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
  foreach(library IN ITEMS fmt nlohmann_json tomlplusplus)
    find_package(${library} QUIET)
    if(NOT ${library}_FOUND)
      berth_lacks("the library ${library}")
    endif()
  endforeach()
endfunction()
