# libtvmcc: the compiler as a library for programs (include/tvmcc/compiler.h), Tvmcc::Compiler.
#
# The rooms below the driver in one shared library.  It exports the functions of the header
# (cmake/libtvmcc.map) and hides all else, LLVM too, of which a process may so have another version.
# Sections that nothing reaches are left out, as in the driver.

# tvmcc_add_library(<room>...): the rooms it is made of.
function(tvmcc_add_library)
    file(GLOB sources CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/library/*.c")
    add_library(tvmcc_compiler SHARED ${sources})
    add_library(Tvmcc::Compiler ALIAS tvmcc_compiler)
    set(map "${PROJECT_SOURCE_DIR}/cmake/libtvmcc.map")
    set_target_properties(tvmcc_compiler PROPERTIES EXPORT_NAME Compiler OUTPUT_NAME tvmcc
        VERSION "${PROJECT_VERSION}" SOVERSION "${PROJECT_VERSION_MAJOR}"
        LIBRARY_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/lib" LINK_DEPENDS "${map}")
    target_include_directories(tvmcc_compiler PUBLIC
        $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include>
        $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
    target_include_directories(tvmcc_compiler PRIVATE "${PROJECT_SOURCE_DIR}")
    target_link_libraries(tvmcc_compiler PRIVATE ${ARGN})
    target_link_options(tvmcc_compiler PRIVATE "-Wl,--version-script=${map}")
endfunction()
