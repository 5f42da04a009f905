# For zig's compilers, which tools/cross.sh has put under BERTH_CROSS together with the libraries that Berth is linked with.
list(APPEND CMAKE_TRY_COMPILE_PLATFORM_VARIABLES BERTH_CROSS BERTH_CROSS_MACHINE)
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR ${BERTH_CROSS_MACHINE})
set(CMAKE_C_COMPILER ${BERTH_CROSS}/bin/cc)
set(CMAKE_CXX_COMPILER ${BERTH_CROSS}/bin/c++)
set(CMAKE_AR ${BERTH_CROSS}/bin/ar CACHE FILEPATH "")
set(CMAKE_RANLIB ${BERTH_CROSS}/bin/ranlib CACHE FILEPATH "")
# What zig adds by itself, and compilers elsewhere do not.
set(CMAKE_C_FLAGS_INIT "-g0 -fomit-frame-pointer")
set(CMAKE_CXX_FLAGS_INIT "-g0 -fomit-frame-pointer")
set(CMAKE_CXX_STANDARD_INCLUDE_DIRECTORIES ${BERTH_CROSS}/root/include)
# To link a program, zig first compiles its libc++ anew for each set of options.
set(CMAKE_TRY_COMPILE_TARGET_TYPE STATIC_LIBRARY)
# Nothing of the machine that compiles may be found: its headers are those of its own glibc.
set(CMAKE_FIND_ROOT_PATH ${BERTH_CROSS}/root)
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)
