# What Berth runs on may have neither {fmt} nor this machine's libstdc++, and glibc 2.34: all but the C library goes
# inside, and of that nothing newer is used. tests/package checks it.

# Each function can be left out alone.
string(REPLACE "-O3" "-O2" CMAKE_CXX_FLAGS_RELEASE "${CMAKE_CXX_FLAGS_RELEASE}")
add_compile_options($<$<CONFIG:Release>:-ffunction-sections> $<$<CONFIG:Release>:-fdata-sections>)

# What reads foreign bytes as root ends at once where a call would write beside what it has. Some compilers define it by
# themselves, with another value. The assertions of the library cost a pick 2 % of its instructions: they are in the build
# with the sanitizers, which runs all unit tests and the fuzz corpora.
add_compile_options($<$<CONFIG:Release>:-fstack-protector-strong>
  $<$<CONFIG:Release>:-U_FORTIFY_SOURCE> $<$<CONFIG:Release>:-D_FORTIFY_SOURCE=3>
  $<$<CONFIG:Debug>:-D_GLIBCXX_ASSERTIONS>)

add_library(berth_fmt STATIC packaging/cmake/fmt.cpp)
if(NOT BERTH_CROSS)
  find_package(fmt 9 REQUIRED)
  get_target_property(fmt_includes fmt::fmt INTERFACE_INCLUDE_DIRECTORIES)
  target_include_directories(berth_fmt SYSTEM PUBLIC ${fmt_includes})
endif()
# No locale is ever asked for. With the code for them came 400 KB and 1,300 relocations, made at each start.
target_compile_definitions(berth_fmt PUBLIC "FMT_STATIC_THOUSANDS_SEPARATOR=','")

# zig's compiler links libc++, its unwinder and the symbols of the glibc that it was told. It needs none of what follows.
if(BERTH_CROSS)
  function(berth_runs_anywhere program)
    target_link_options(${program} PRIVATE -Wl,--gc-sections -Wl,--as-needed -s)
  endfunction()
  return()
endif()

add_library(berth_find_object OBJECT packaging/cmake/find_object.cpp)
target_link_libraries(berth_find_object PRIVATE berth_warnings)

# libstdc++ mentions libm, at least in code that the linker drops, and loading it costs each start 0.04 ms. The
# compiler ends its command with -lm, which finds this file first: what is really used then goes inside.
set(static_libraries ${PROJECT_BINARY_DIR}/static)
file(CONFIGURE OUTPUT ${static_libraries}/libm.so CONTENT "INPUT(-l:libm.a)\n")

# Only in the release build: a sanitizer must find the libraries that it looks into.
function(berth_runs_anywhere program)
  if(NOT CMAKE_BUILD_TYPE STREQUAL "Release")
    return()
  endif()
  target_sources(${program} PRIVATE $<TARGET_OBJECTS:berth_find_object>)
  # -L here and no target_link_directories, which would put the folder, and the current one, on the path that the
  # program looks for its libraries on.
  target_link_options(${program} PRIVATE -static-libstdc++ -static-libgcc -Wl,--gc-sections -Wl,--as-needed -Wl,-O1
    -L${static_libraries})
endfunction()
