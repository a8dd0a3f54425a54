# What is installed beside the driver, the runtime and the CMake package: manual page, completions,
# pkg-config file, documents; and the .deb of CPack.  `scripts/package` makes the packages.

# ---- made from the option table ------------------------------------------------------------------

find_program(TVMCC_GZIP gzip)
mark_as_advanced(TVMCC_GZIP)
set(share "${PROJECT_BINARY_DIR}/share")
file(MAKE_DIRECTORY "${share}")
add_executable(tvmcc_cmddoc "${PROJECT_SOURCE_DIR}/tools/cmddoc.c")
target_compile_definitions(tvmcc_cmddoc PRIVATE "TVMCC_VERSION=\"${PROJECT_VERSION}\"")
target_compile_options(tvmcc_cmddoc PRIVATE -Wall -Wextra)
target_include_directories(tvmcc_cmddoc PRIVATE "${PROJECT_SOURCE_DIR}")
set_target_properties(tvmcc_cmddoc PROPERTIES RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/tools")
foreach(kind IN ITEMS man bash zsh)
    set(file_man tvmcc.1)
    set(file_bash tvmcc.bash)
    set(file_zsh _tvmcc)
    add_custom_command(OUTPUT "${share}/${file_${kind}}"
        COMMAND tvmcc_cmddoc ${kind} "${share}/${file_${kind}}"
        DEPENDS tvmcc_cmddoc VERBATIM)
    list(APPEND made "${share}/${file_${kind}}")
endforeach()
set(manual "${share}/tvmcc.1")
if(TVMCC_GZIP) # without name and time, so that the bytes are always the same
    set(manual "${share}/tvmcc.1.gz")
    add_custom_command(OUTPUT "${manual}" COMMAND "${TVMCC_GZIP}" -9nkf "${share}/tvmcc.1"
        DEPENDS "${share}/tvmcc.1" VERBATIM)
    list(APPEND made "${manual}")
endif()
add_custom_target(tvmcc_manual ALL DEPENDS ${made})

# ---- pkg-config -----------------------------------------------------------------------------------

# Paths from where the file lies, so that an unpacked tarball may be anywhere.
cmake_path(SET libdir "/x/${CMAKE_INSTALL_LIBDIR}/pkgconfig")
cmake_path(SET top "/x")
cmake_path(RELATIVE_PATH top BASE_DIRECTORY "${libdir}" OUTPUT_VARIABLE to_prefix)
file(CONFIGURE OUTPUT "${share}/tvmcc.pc" CONTENT "prefix=\${pcfiledir}/@to_prefix@
libdir=\${prefix}/@CMAKE_INSTALL_LIBDIR@
includedir=\${prefix}/@CMAKE_INSTALL_INCLUDEDIR@
tvmcc=\${prefix}/@CMAKE_INSTALL_BINDIR@/tvmcc
abi=1

Name: tvmcc
Description: compiler for trained models: runtime of what it makes
Version: @PROJECT_VERSION@
Cflags: -I\${includedir}
Libs: -L\${libdir} -ltvmcc_runtime -pthread -ldl -lm
" @ONLY)

# The compiler as a library.
file(CONFIGURE OUTPUT "${share}/tvmcc-compiler.pc" CONTENT "prefix=\${pcfiledir}/@to_prefix@
libdir=\${prefix}/@CMAKE_INSTALL_LIBDIR@
includedir=\${prefix}/@CMAKE_INSTALL_INCLUDEDIR@

Name: tvmcc-compiler
Description: compiler for trained models, as a library
Version: @PROJECT_VERSION@
Cflags: -I\${includedir}
Libs: -L\${libdir} -ltvmcc
Libs.private: @llvm_linked@ -larchive -ljansson -lz -pthread -ldl -lm
" @ONLY)

# ---- where it all goes ------------------------------------------------------------------------------

if(NOT TVMCC_INSTALL)
    return()
endif()
set(TVMCC_MAINTAINER "tvmcc maintainers <root@localhost>" CACHE STRING
    "who the .deb says maintains it")
install(FILES "${manual}" DESTINATION "${CMAKE_INSTALL_MANDIR}/man1")
install(FILES "${share}/tvmcc.bash"
    DESTINATION "${CMAKE_INSTALL_DATADIR}/bash-completion/completions" RENAME tvmcc)
# Debian's zsh looks for the completions of packages in a folder of its own.
install(CODE "
    set(folder site-functions)
    if(CMAKE_INSTALL_PREFIX STREQUAL \"/usr\" AND EXISTS /etc/debian_version)
        set(folder vendor-completions)
    endif()
    file(INSTALL \"${share}/_tvmcc\"
        DESTINATION \"\${CMAKE_INSTALL_PREFIX}/${CMAKE_INSTALL_DATADIR}/zsh/\${folder}\")")
# Debian wants a changelog of the package in a form of its own.
install(CODE "
    if(CMAKE_INSTALL_PREFIX STREQUAL \"/usr\" AND EXISTS /etc/debian_version AND
            \"${TVMCC_GZIP}\" MATCHES \"/gzip$\")
        string(TIMESTAMP date \"%a, %d %b %Y %H:%M:%S +0000\" UTC)
        set(folder \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/${CMAKE_INSTALL_DATADIR}/doc/tvmcc\")
        file(WRITE \"\${folder}/changelog\" \"tvmcc (${PROJECT_VERSION}) unstable; urgency=medium\n\n\"
            \"  * CHANGELOG.md says what is new.\n\n -- ${TVMCC_MAINTAINER}  \${date}\n\")
        execute_process(COMMAND \"${TVMCC_GZIP}\" -9nf \"\${folder}/changelog\"
            COMMAND_ERROR_IS_FATAL ANY)
        list(APPEND CMAKE_INSTALL_MANIFEST_FILES \"\${folder}/changelog.gz\")
    endif()")
install(FILES "${share}/tvmcc.pc" DESTINATION "${CMAKE_INSTALL_LIBDIR}/pkgconfig")
if(TARGET tvmcc_compiler)
    install(FILES "${share}/tvmcc-compiler.pc" DESTINATION "${CMAKE_INSTALL_LIBDIR}/pkgconfig")
endif()
set(doc "${CMAKE_INSTALL_DATADIR}/doc/tvmcc")
install(FILES README.md CHANGELOG.md DESTINATION "${doc}")
install(FILES cmake/copyright DESTINATION "${doc}")
install(DIRECTORY docs DESTINATION "${doc}" FILES_MATCHING PATTERN "*.md" PATTERN "*.svg")
install(DIRECTORY examples DESTINATION "${doc}" PATTERN "build" EXCLUDE)

# All that is installed, and no test: for who builds to install.
add_custom_target(tvmcc_installed DEPENDS tvmcc_manual)
foreach(target IN ITEMS tvmcc tvmcc_runtime tvmcc_compiler tvmcc_compiler_archive)
    if(TARGET ${target})
        add_dependencies(tvmcc_installed ${target})
    endif()
endforeach()

# ---- the package ------------------------------------------------------------------------------------

set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME tvmcc)
set(CPACK_PACKAGE_CONTACT "${TVMCC_MAINTAINER}")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "compiler for trained models")
set(CPACK_PACKAGE_DESCRIPTION
    "tvmcc is to a neural network what a C compiler is to a C file: a model goes in,
an object file and a C header come out, for any target, and a build system
drives it. Inference is a function call; there is no run-time framework.")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ
    GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION devel)
set(CPACK_DEBIAN_PACKAGE_PRIORITY optional)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_RECOMMENDS "gcc | clang, libc6-dev, ninja-build")
set(CPACK_DEBIAN_PACKAGE_SUGGESTS "cmake, lld, qemu-user-static, pkg-config")
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
set(CPACK_DEBIAN_COMPRESSION_TYPE xz)
include(CPack)
