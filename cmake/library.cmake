# libtvmcc: the compiler as a library for programs (include/tvmcc/compiler.h), Tvmcc::Compiler.
#
# The rooms below the driver in one shared library.  It exports the functions of the header
# (cmake/libtvmcc.map) and hides all else, LLVM too, of which a process may so have another version.
# Sections that nothing reaches are left out, as in the driver.

# tvmcc_shared(<target> <folder> <room or source>...): the library of those rooms.
function(tvmcc_shared target folder)
    file(GLOB sources CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/library/*.c")
    set(map "${PROJECT_SOURCE_DIR}/cmake/libtvmcc.map")
    add_library(${target} SHARED ${sources})
    set_target_properties(${target} PROPERTIES OUTPUT_NAME tvmcc
        VERSION "${PROJECT_VERSION}" SOVERSION "${PROJECT_VERSION_MAJOR}"
        LIBRARY_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/${folder}" LINK_DEPENDS "${map}")
    target_include_directories(${target} PUBLIC
        $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include>
        $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
    target_include_directories(${target} PRIVATE "${PROJECT_SOURCE_DIR}")
    target_link_libraries(${target} PRIVATE ${ARGN})
    target_link_options(${target} PRIVATE "-Wl,--version-script=${map}")
endfunction()

# tvmcc_add_library(<room>...): the rooms it is made of.
function(tvmcc_add_library)
    tvmcc_shared(tvmcc_compiler lib ${ARGN})
    set_target_properties(tvmcc_compiler PROPERTIES EXPORT_NAME Compiler)
    add_library(Tvmcc::Compiler ALIAS tvmcc_compiler)
endfunction()

# The same as an archive for programs that want it inside them, libtvmcc.a: one object, in which all
# but those functions are local.  LLVM and the libraries stay outside: Tvmcc::CompilerStatic links them,
# and tvmcc-compiler.pc names them.
function(tvmcc_add_static_library)
    if(NOT CMAKE_OBJCOPY OR TVMCC_SANITIZE)
        return()
    endif()
    set(rooms ${ARGN})
    list(REMOVE_ITEM rooms tvmcc_manifest) # of the driver alone
    list(TRANSFORM rooms REPLACE "(.+)" "$<TARGET_FILE:\\1>" OUTPUT_VARIABLE files)
    set(archive "${PROJECT_BINARY_DIR}/lib/libtvmcc.a")
    set(work "${PROJECT_BINARY_DIR}/libtvmcc")
    file(STRINGS "${PROJECT_SOURCE_DIR}/cmake/libtvmcc.map" symbols REGEX "^ +tvmcc_[a-z_]+;")
    list(TRANSFORM symbols REPLACE "[ ;]" "")
    list(JOIN symbols "\n" symbols)
    file(CONFIGURE OUTPUT "${work}/symbols" CONTENT "@symbols@\n" @ONLY)
    add_custom_command(OUTPUT "${archive}"
        COMMAND "${CMAKE_C_COMPILER}" -nostdlib -r -o "${work}/all.o" $<TARGET_OBJECTS:tvmcc_compiler>
            -Wl,--whole-archive ${files} -Wl,--no-whole-archive
        COMMAND "${CMAKE_OBJCOPY}" "--keep-global-symbols=${work}/symbols" "${work}/all.o" "${work}/tvmcc.o"
        COMMAND "${CMAKE_COMMAND}" -E rm -f "${archive}"
        COMMAND "${CMAKE_AR}" rcsD "${archive}" "${work}/tvmcc.o"
        DEPENDS tvmcc_compiler ${rooms} "${work}/symbols" VERBATIM COMMAND_EXPAND_LISTS)
    add_custom_target(tvmcc_compiler_archive ALL DEPENDS "${archive}")
    add_library(tvmcc_compiler_static INTERFACE)
    add_library(Tvmcc::CompilerStatic ALIAS tvmcc_compiler_static)
    add_dependencies(tvmcc_compiler_static tvmcc_compiler_archive)
    set_target_properties(tvmcc_compiler_static PROPERTIES EXPORT_NAME CompilerStatic)
    target_include_directories(tvmcc_compiler_static INTERFACE
        $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include>
        $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
    separate_arguments(llvm NATIVE_COMMAND "${llvm_linked}")
    target_link_libraries(tvmcc_compiler_static INTERFACE $<BUILD_INTERFACE:${archive}>
        "$<INSTALL_INTERFACE:$<INSTALL_PREFIX>/${CMAKE_INSTALL_LIBDIR}/libtvmcc.a>"
        ${llvm} archive jansson z -pthread dl m)
    if(TVMCC_INSTALL)
        install(FILES "${archive}" DESTINATION "${CMAKE_INSTALL_LIBDIR}")
        install(TARGETS tvmcc_compiler_static EXPORT TvmccCompilerStaticTargets)
    endif()
endfunction()
