# The language TVMMODEL: a model file as a source of a library or program.  CMake reads this file first,
# to find the compiler, then CMakeTestTVMMODELCompiler.cmake and CMakeTVMMODELInformation.cmake.

if(NOT CMAKE_TVMMODEL_COMPILER)
    if(TARGET Tvmcc::tvmcc)
        get_target_property(CMAKE_TVMMODEL_COMPILER Tvmcc::tvmcc LOCATION)
    elseif(NOT "$ENV{TVMCC}" STREQUAL "")
        set(CMAKE_TVMMODEL_COMPILER "$ENV{TVMCC}")
    else()
        find_program(CMAKE_TVMMODEL_COMPILER tvmcc DOC "The compiler of models"
            HINTS "${CMAKE_CURRENT_LIST_DIR}/../../../bin" "${CMAKE_CURRENT_LIST_DIR}/../../../../bin"
            NO_CMAKE_FIND_ROOT_PATH) # it runs on this machine, whatever the project is for
    endif()
endif()
if(NOT CMAKE_TVMMODEL_COMPILER)
    message(FATAL_ERROR "There is no tvmcc: call find_package(Tvmcc) before enable_language(TVMMODEL), or set "
        "CMAKE_TVMMODEL_COMPILER or the environment variable TVMCC")
endif()
mark_as_advanced(CMAKE_TVMMODEL_COMPILER)
set(CMAKE_TVMMODEL_COMPILER_ENV_VAR "TVMCC")
configure_file("${CMAKE_CURRENT_LIST_DIR}/CMakeTVMMODELCompiler.cmake.in"
    "${CMAKE_PLATFORM_INFO_DIR}/CMakeTVMMODELCompiler.cmake" @ONLY)
