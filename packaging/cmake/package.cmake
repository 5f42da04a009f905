# A tarball to unpack and run without root, and a .deb.
set(CPACK_GENERATOR TGZ DEB)
set(CPACK_PACKAGE_NAME berth)
set(CPACK_PACKAGE_VENDOR Berth)
set(CPACK_PACKAGE_CONTACT "Berth <berth@localhost>")
set(CPACK_PACKAGE_DIRECTORY ${PROJECT_SOURCE_DIR}/dist)
string(TOLOWER ${CMAKE_SYSTEM_NAME} system)
set(CPACK_PACKAGE_FILE_NAME berth-${PROJECT_VERSION}-${system}-${CMAKE_SYSTEM_PROCESSOR})
set(CPACK_STRIP_FILES ON)
set(CPACK_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS
    OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)

set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION admin)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_RECOMMENDS "systemd, libncursesw6")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "pick, lease and explain the GPUs of a machine")
set(CPACK_DEBIAN_PACKAGE_DESCRIPTION "\
Berth picks free GPUs by what a job asks for, leases them so that nobody else
gets them, and explains every answer. It needs no daemon, no root and no
database. The lease directory is /run/berth, made at boot by systemd-tmpfiles.")
set(CPACK_DEBIAN_PACKAGE_CONTROL_EXTRA ${PROJECT_SOURCE_DIR}/packaging/cmake/postinst)
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
include(CPack)
