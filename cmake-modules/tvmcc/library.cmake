# The library of a model, and the targets around it.  Macros run in the scope of add_tvm_model().

# _tvm_runtime(<variable>): the run-time library.  Tvmcc::runtime is for the machine that the compiler runs
# on; a cross build makes its own from the sources that lie beside it.
function(_tvm_runtime variable)
    set(runtime Tvmcc::runtime)
    if(CMAKE_CROSSCOMPILING)
        set(runtime tvmcc_cross_runtime)
        if(NOT TARGET tvmcc_cross_runtime)
            get_property(abi_header GLOBAL PROPERTY TVMCC_ABI_HEADER)
            cmake_path(GET abi_header PARENT_PATH include)
            cmake_path(GET include PARENT_PATH include)
            file(GLOB sources "${include}/../runtime/*.c" "${include}/../runtime/device/*.c"
                "${include}/../share/tvmcc/runtime/*.c" "${include}/../share/tvmcc/runtime/device/*.c")
            if(NOT sources)
                _tvm_fail("${name}" "the sources of the run-time library, which a cross build compiles, are not "
                    "installed beside '${include}': use THREADS CALLER or NONE")
            endif()
            find_package(Threads REQUIRED)
            add_library(tvmcc_cross_runtime STATIC EXCLUDE_FROM_ALL ${sources})
            target_include_directories(tvmcc_cross_runtime PUBLIC "$<BUILD_INTERFACE:${include}>")
            target_compile_definitions(tvmcc_cross_runtime PRIVATE _GNU_SOURCE)
            target_link_libraries(tvmcc_cross_runtime PUBLIC Threads::Threads ${CMAKE_DL_LIBS} m)
        endif()
    endif()
    set(${variable} ${runtime} PARENT_SCOPE)
endfunction()

# _tvm_link(<target> PUBLIC|INTERFACE <item>...): as target_link_libraries(), which would take from a project the choice
# to write it without keywords for that target.
function(_tvm_link target scope)
    if(scope STREQUAL "PUBLIC")
        set_property(TARGET ${target} APPEND PROPERTY LINK_LIBRARIES ${ARGN})
    endif()
    set_property(TARGET ${target} APPEND PROPERTY INTERFACE_LINK_LIBRARIES ${ARGN})
endfunction()

macro(_tvm_library)
    # Sources of a library are known to one folder only; consumers elsewhere wait for this target.
    set(all ALL)
    if(A_EXCLUDE_FROM_ALL)
        set(all)
    endif()
    add_custom_target(${name}.compile ${all} DEPENDS ${products})

    set(scope PUBLIC)
    if(A_TYPE STREQUAL "OBJECT")
        # CMake has no object library of foreign objects: an interface library hands them on.
        set(scope INTERFACE)
        include(GNUInstallDirs)
        add_library(${name} INTERFACE)
        foreach(object IN LISTS objects)
            cmake_path(GET object FILENAME file)
            target_link_libraries(${name} INTERFACE "$<BUILD_INTERFACE:${object}>"
                "$<INSTALL_INTERFACE:$<INSTALL_PREFIX>/${CMAKE_INSTALL_LIBDIR}/${file}>")
        endforeach()
    else()
        add_library(${name} ${A_TYPE} ${objects})
        get_property(languages GLOBAL PROPERTY ENABLED_LANGUAGES)
        set(language CXX)
        if("C" IN_LIST languages)
            set(language C)
        endif()
        set_target_properties(${name} PROPERTIES LINKER_LANGUAGE ${language})
        if(A_EXCLUDE_FROM_ALL)
            set_target_properties(${name} PROPERTIES EXCLUDE_FROM_ALL TRUE)
        endif()
    endif()
    _tvm_pic_property()
    add_library(${name}::${name} ALIAS ${name})
    add_dependencies(${name} ${name}.compile)
    target_sources(${name} ${scope} FILE_SET HEADERS BASE_DIRS "${dir}"
        FILES "${header}" "${dir}/tvmcc/abi.h")
    if(UNIX AND NOT A_NO_LIBM)
        _tvm_link(${name} ${scope} -lm) # by option: a model may be called m
    endif()
    if(A_THREADS STREQUAL "POOL")
        # Installed, the model brings the library along: who uses it needs no package of ours.
        _tvm_runtime(runtime)
        include(GNUInstallDirs)
        _tvm_link(${name} ${scope} "$<BUILD_INTERFACE:${runtime}>"
            "$<INSTALL_INTERFACE:$<INSTALL_PREFIX>/${CMAKE_INSTALL_LIBDIR}/lib${name}_runtime.a>"
            "$<INSTALL_INTERFACE:-pthread>" ${CMAKE_DL_LIBS})
        set_target_properties(${name} PROPERTIES TVM_RUNTIME "${runtime}")
    endif()
    if(A_LINK_LIBRARIES)
        target_link_libraries(${name} ${scope} ${A_LINK_LIBRARIES})
    endif()
    set_target_properties(${name} PROPERTIES TVM_HEADER "${header}" TVM_OBJECTS "${objects}"
        TVM_METADATA "${metadata}" TVM_WEIGHTS_FILE "${weights}" TVM_ARCHIVE ""
        TVM_TUNING_COVERAGE "${metadata}" TVM_TARGETS "${targets}"
        TVM_TYPE "${A_TYPE}" TVM_ENTRY "${A_ENTRY}" TVM_THREADS "${A_THREADS}" TVM_NO_LIBM "${A_NO_LIBM}")
    if(DEFINED A_EXPORT_SET)
        tvm_install_model(${name} EXPORT ${A_EXPORT_SET})
    endif()
endmacro()

# What archives are packed from, by <name>.package: made only when something asks for it.
macro(_tvm_package)
    set(package "${metadata}" "${stem}.h" ${objects} ${weights})
    if(NOT source)
        _tvm_package_libraries()
    endif()
    _tvm_ends(packaged ${package})
    add_custom_target(${name}.package DEPENDS ${packaged})
    add_dependencies(${name}.package ${name}.compile)
    set_target_properties(${name} PROPERTIES TVM_PACKAGE "${package}")
endmacro()

# Libraries in place of the objects.
macro(_tvm_package_libraries)
    _tvm_command(OUTPUT "${stem}.a"
        COMMAND ${tvmcc} ${objects} -o "${stem}.a"
        DEPENDS ${objects}
        COMMENT "Collecting ${name}")
    set(package "${metadata}" "${stem}.h" "${stem}.a" ${weights})
    if(CMAKE_SYSTEM_NAME MATCHES "^(Linux|Android)$" AND pic_property AND NOT triple STREQUAL ""
            AND NOT A_WEIGHTS STREQUAL "EXTERN")
        _tvm_command(OUTPUT "${dir}/lib${A_ENTRY}.so"
            COMMAND ${tvmcc} ${objects} "-mtriple=${triple}" -o "${dir}/lib${A_ENTRY}.so"
            DEPENDS ${objects}
            COMMENT "Linking ${name} for archives")
        list(APPEND package "${dir}/lib${A_ENTRY}.so")
    endif()
endmacro()

# The promises of docs/archive.md and CODE_LIMIT, beside what uses the library.  Sets `subject`, what is
# checked and verified: the library, or an archive of its objects that lies beside the weights file.  A
# shared library has start files that are not ours.
macro(_tvm_audit)
    set(audit --entry=${A_ENTRY})
    if(DEFINED A_CODE_LIMIT)
        list(APPEND audit "--max-code=${A_CODE_LIMIT}")
    endif()
    if(A_NO_LIBM)
        list(APPEND audit --no-libm)
    endif()
    if(A_WEIGHTS STREQUAL "EXTERN")
        list(APPEND audit -fweights=extern)
    endif()
    list(APPEND audit "${pic}")
    list(APPEND audit "--stamp=${stem}.audit")
    if(A_TYPE STREQUAL "STATIC" AND NOT weights)
        set(subject "$<TARGET_FILE:${name}>")
        set(subject_from ${name})
    else()
        set(subject "${stem}.a")
        set(subject_from "${stem}.a")
    endif()
    _tvm_command(OUTPUT "${stem}.audit"
        COMMAND ${tvmcc} audit "${subject}" ${audit}
        DEPENDS ${subject_from}
        COMMENT "Checking what ${name} promises")
    _tvm_ends(audited "${stem}.audit")
    add_custom_target(${name}.audit ${all} DEPENDS ${audited})
    add_dependencies(${name}.audit ${name}.compile)
endmacro()

# <name>.verify: the product on recorded inputs; on another machine's product through the project's own
# compiler and emulator.
macro(_tvm_verify)
    if(DEFINED A_TEST_INPUTS)
        _tvm_absolute(A_TEST_INPUTS "${CMAKE_CURRENT_SOURCE_DIR}")
        _tvm_absolute(A_TEST_OUTPUTS "${CMAKE_CURRENT_SOURCE_DIR}")
        set(verify "${subject}")
        if(device OR source)
            set(verify "${A_MODEL}" ${arguments}) # a device's code is compiled where it runs
            list(REMOVE_ITEM verify "${pic}")
            list(FILTER verify EXCLUDE REGEX "^(-fweights|--weights-section)=")
        endif()
        list(APPEND verify --inputs "${A_TEST_INPUTS}" --expect "${A_TEST_OUTPUTS}")
        if(DEFINED A_RTOL)
            list(APPEND verify "--rtol=${A_RTOL}")
        endif()
        if(DEFINED A_ATOL)
            list(APPEND verify "--atol=${A_ATOL}")
        endif()
        if(A_PER_LAYER)
            list(APPEND verify --per-layer)
            if(NOT device AND NOT source)
                list(APPEND verify "--plan=${stem}.plan")
            endif()
        endif()
        if(CMAKE_CROSSCOMPILING AND CMAKE_CROSSCOMPILING_EMULATOR)
            list(JOIN CMAKE_CROSSCOMPILING_EMULATOR " " emulator)
            list(APPEND verify "--emulator=${emulator}")
        endif()
        # Code for Android calls nothing that differs: tvmcc links it with a C library that the emulator has.
        if(CMAKE_CROSSCOMPILING AND CMAKE_C_COMPILER AND NOT ANDROID AND NOT CMAKE_SYSTEM_NAME STREQUAL "Android")
            set(compiler ${CMAKE_C_COMPILER})
            if(CMAKE_C_COMPILER_TARGET)
                list(APPEND compiler "${CMAKE_C_COMPILE_OPTIONS_TARGET}${CMAKE_C_COMPILER_TARGET}")
            endif()
            if(CMAKE_SYSROOT)
                list(APPEND compiler "${CMAKE_C_COMPILE_OPTIONS_SYSROOT}${CMAKE_SYSROOT}")
            endif()
            list(APPEND compiler ${CMAKE_C_FLAGS} ${CMAKE_EXE_LINKER_FLAGS})
            list(JOIN compiler " " compiler)
            list(APPEND verify "--cc=${compiler}")
        endif()
        add_test(NAME ${name}.verify COMMAND $<TARGET_FILE:Tvmcc::tvmcc> verify ${verify})
    endif()
endmacro()

# <name>_benchmark: a program that runs the model and prints how long it takes.
macro(_tvm_benchmark)
    if(A_BENCHMARK)
        if(device)
            _tvm_fail("${name}" "BENCHMARK is for models that run on a CPU: 'tvmcc bench' measures others")
        endif()
        get_property(modules GLOBAL PROPERTY TVMCC_MODULES)
        set(source "${A_OUTPUT_DIRECTORY}/${A_ENTRY}_benchmark.c")
        set(TVM_ENTRY "${A_ENTRY}")
        configure_file("${modules}/tvmcc/benchmark.c.in" "${source}" @ONLY)
        add_executable(${name}_benchmark "${source}")
        target_link_libraries(${name}_benchmark PRIVATE ${name})
        if(weights)
            target_compile_definitions(${name}_benchmark PRIVATE "WEIGHTS_FILE=\"${weights}\"")
        endif()
        if(A_EXCLUDE_FROM_ALL)
            set_target_properties(${name}_benchmark PROPERTIES EXCLUDE_FROM_ALL TRUE)
        endif()
    endif()
endmacro()
