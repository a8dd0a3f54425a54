# tvmcc_portable: the driver as the tarball of `scripts/package` has it, in bin/portable/, and
# tvmcc_portable_library, libtvmcc.so, in lib/portable/.
#
# The same objects as the target tvmcc, linked otherwise: libraries statically, and what glibc changed
# after 2.31 through cmake/old_glibc.c, so that one file runs on distributions from 2020 on.  Only
# where the static libraries are installed.

# tvmcc_library(<name> SHARED <library>... STATIC <library>...): the target tvmcc_<name>, which is the
# static libraries in executables whose property TVMCC_PORTABLE is on, the shared ones elsewhere.
function(tvmcc_library name)
    cmake_parse_arguments(PARSE_ARGV 1 A "" "" "SHARED;STATIC")
    set(portable "$<BOOL:$<TARGET_PROPERTY:TVMCC_PORTABLE>>")
    add_library(tvmcc_lib_${name} INTERFACE)
    foreach(library IN LISTS A_SHARED)
        target_link_libraries(tvmcc_lib_${name} INTERFACE "$<$<NOT:${portable}>:${library}>")
        if(TARGET "${library}")
            target_include_directories(tvmcc_lib_${name} SYSTEM INTERFACE
                $<TARGET_PROPERTY:${library},INTERFACE_INCLUDE_DIRECTORIES>)
        endif()
    endforeach()
    foreach(library IN LISTS A_STATIC)
        target_link_libraries(tvmcc_lib_${name} INTERFACE "$<${portable}:${library}>")
    endforeach()
endfunction()

# To be called when all rooms stand.
function(tvmcc_add_portable)
    if(NOT CMAKE_SYSTEM_NAME STREQUAL "Linux" OR NOT CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|aarch64)$"
            OR TVMCC_SANITIZE OR NOT TVMCC_STATIC_LLVM)
        return()
    endif()
    # Older systems keep threads and dlopen in files of their own, which the newer have for show.
    find_file(TVMCC_LIBPTHREAD NAMES libpthread.so.0 PATHS /lib /usr/lib
        PATH_SUFFIXES ${CMAKE_C_LIBRARY_ARCHITECTURE})
    find_file(TVMCC_LIBDL NAMES libdl.so.2 PATHS /lib /usr/lib
        PATH_SUFFIXES ${CMAKE_C_LIBRARY_ARCHITECTURE})
    mark_as_advanced(TVMCC_LIBPTHREAD TVMCC_LIBDL)
    if(NOT TVMCC_LIBPTHREAD OR NOT TVMCC_LIBDL)
        return()
    endif()
    foreach(library IN ITEMS archive bz2 lzma yaml jansson zstd z)
        find_library(TVMCC_LIB${library}_A NAMES "lib${library}.a")
        mark_as_advanced(TVMCC_LIB${library}_A)
        if(NOT TVMCC_LIB${library}_A)
            return() # scripts/package installs it
        endif()
    endforeach()
    set(source "${PROJECT_SOURCE_DIR}/cmake/old_glibc.c")
    file(STRINGS "${source}" rows REGEX "^WRAP\\(")
    set(wraps)
    foreach(row IN LISTS rows)
        string(REGEX REPLACE "^WRAP\\([^,]*, *([A-Za-z0-9_]+).*" "-Wl,--wrap=\\1" wrap "${row}")
        list(APPEND wraps "${wrap}")
    endforeach()
    add_executable(tvmcc_portable EXCLUDE_FROM_ALL
        "${PROJECT_SOURCE_DIR}/driver/main.c" "${source}" "${PROJECT_SOURCE_DIR}/cmake/no_nettle.c")
    set_source_files_properties("${source}" PROPERTIES COMPILE_OPTIONS "-std=gnu11;-fno-builtin")
    set_target_properties(tvmcc_portable PROPERTIES TVMCC_PORTABLE ON OUTPUT_NAME tvmcc
        RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/bin/portable"
        SKIP_BUILD_RPATH ON)
    target_link_libraries(tvmcc_portable PRIVATE ${room_libraries}
        -Wl,--no-as-needed "${TVMCC_LIBPTHREAD}" "${TVMCC_LIBDL}" -Wl,--as-needed)
    target_link_options(tvmcc_portable PRIVATE ${wraps} -static-libgcc)
    if(NOT TARGET tvmcc_compiler)
        return()
    endif()
    set(rooms ${room_libraries})
    list(REMOVE_ITEM rooms tvmcc_driver)
    tvmcc_shared(tvmcc_portable_library lib/portable ${rooms}
        -Wl,--no-as-needed "${TVMCC_LIBPTHREAD}" "${TVMCC_LIBDL}" -Wl,--as-needed)
    target_sources(tvmcc_portable_library PRIVATE "${source}" "${PROJECT_SOURCE_DIR}/cmake/no_nettle.c"
        "${PROJECT_SOURCE_DIR}/cmake/streams.c")
    list(APPEND wraps -Wl,--wrap=stdin -Wl,--wrap=stdout -Wl,--wrap=stderr)
    set_target_properties(tvmcc_portable_library PROPERTIES TVMCC_PORTABLE ON EXCLUDE_FROM_ALL ON
        SKIP_BUILD_RPATH ON)
    target_link_options(tvmcc_portable_library PRIVATE ${wraps} -static-libgcc)
endfunction()
