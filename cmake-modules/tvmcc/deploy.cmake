# Installing models: headers, libraries, weights, and the files that find them again.

# tvm_install_model(<name> [EXPORT <set>] [COMPONENT <component>])
#
# Without EXPORT a package of the model's name is made: find_package(<name>), target <name>::<name>.
function(tvm_install_model name)
    set_property(GLOBAL PROPERTY TVM_FUNCTION tvm_install_model)
    _tvm_parse("${name}" "" "EXPORT;COMPONENT" "" "" ${ARGN})
    if(TARGET "${name}")
        get_target_property(type "${name}" TVM_TYPE)
    endif()
    if(NOT type)
        _tvm_fail("${name}" "there is no model of that name")
    endif()
    include(GNUInstallDirs)
    get_target_property(weights ${name} TVM_WEIGHTS_FILE)
    get_target_property(objects ${name} TVM_OBJECTS)
    get_target_property(entry ${name} TVM_ENTRY)
    set(component)
    if(DEFINED A_COMPONENT)
        set(component COMPONENT "${A_COMPONENT}")
    endif()
    set(set "${A_EXPORT}")
    if(NOT DEFINED A_EXPORT)
        set(set "${name}Targets")
        _tvm_package_config()
    endif()
    install(TARGETS ${name} EXPORT "${set}"
        ARCHIVE ${component} LIBRARY ${component} RUNTIME ${component} FILE_SET HEADERS ${component})
    if(type STREQUAL "OBJECT")
        install(FILES ${objects} DESTINATION "${CMAKE_INSTALL_LIBDIR}" ${component})
    endif()
    if(weights)
        install(FILES "${weights}" DESTINATION "${CMAKE_INSTALL_DATADIR}/${entry}" ${component})
    endif()
    _tvm_pkg_config()
    if(ANDROID OR CMAKE_SYSTEM_NAME STREQUAL "Android")
        _tvm_android_mk()
    endif()
endfunction()

macro(_tvm_package_config)
    get_target_property(threads ${name} TVM_THREADS)
    set(needs "")
    if(threads STREQUAL "POOL")
        set(needs "include(CMakeFindDependencyMacro)\nfind_dependency(Tvmcc)\n")
    endif()
    file(CONFIGURE OUTPUT "${CMAKE_CURRENT_BINARY_DIR}/tvm/${name}Config.cmake" @ONLY CONTENT
        "# find_package(@name@): the model as the library @name@::@name@.\n@needs@include(\"\${CMAKE_CURRENT_LIST_DIR}/@name@Targets.cmake\")\n")
    install(EXPORT "${set}" NAMESPACE "${name}::" DESTINATION "${CMAKE_INSTALL_LIBDIR}/cmake/${name}" ${component})
    install(FILES "${CMAKE_CURRENT_BINARY_DIR}/tvm/${name}Config.cmake"
        DESTINATION "${CMAKE_INSTALL_LIBDIR}/cmake/${name}" ${component})
endmacro()

# <name>.pc, relative to itself, so that the installed tree may be moved.
macro(_tvm_pkg_config)
    set(libs "-L\${libdir} -l${name}")
    if(type STREQUAL "OBJECT")
        set(libs "")
        foreach(object IN LISTS objects)
            cmake_path(GET object FILENAME file)
            string(APPEND libs "\${libdir}/${file} ")
        endforeach()
    elseif(type STREQUAL "MODULE")
        set(libs "\${libdir}/${CMAKE_SHARED_MODULE_PREFIX}${name}${CMAKE_SHARED_MODULE_SUFFIX}")
    endif()
    get_target_property(threads ${name} TVM_THREADS)
    set(requires "")
    if(threads STREQUAL "POOL")
        set(requires "Requires: tvmcc\n")
    endif()
    get_target_property(no_libm ${name} TVM_NO_LIBM)
    if(NOT no_libm)
        string(APPEND libs " -lm")
    endif()
    set(version "${PROJECT_VERSION}")
    if(NOT version)
        set(version 0)
    endif()
    cmake_path(RELATIVE_PATH CMAKE_INSTALL_FULL_LIBDIR BASE_DIRECTORY "${CMAKE_INSTALL_PREFIX}" OUTPUT_VARIABLE lib)
    cmake_path(RELATIVE_PATH CMAKE_INSTALL_FULL_INCLUDEDIR BASE_DIRECTORY "${CMAKE_INSTALL_PREFIX}"
        OUTPUT_VARIABLE include)
    string(REGEX REPLACE "[^/]+" ".." up "${lib}")
    file(CONFIGURE OUTPUT "${CMAKE_CURRENT_BINARY_DIR}/tvm/${name}.pc" @ONLY CONTENT
"prefix=\${pcfiledir}/../@up@
libdir=\${prefix}/@lib@
includedir=\${prefix}/@include@

Name: @name@
Description: a model compiled by tvmcc
Version: @version@
@requires@Cflags: -I\${includedir}
Libs: @libs@
")
    install(FILES "${CMAKE_CURRENT_BINARY_DIR}/tvm/${name}.pc" DESTINATION "${CMAKE_INSTALL_LIBDIR}/pkgconfig"
        ${component})
endmacro()

# For ndk-build: a prebuilt module.
macro(_tvm_android_mk)
    set(kind PREBUILT_STATIC_LIBRARY)
    set(file "lib${name}.a")
    if(type MATCHES "SHARED|MODULE")
        set(kind PREBUILT_SHARED_LIBRARY)
        set(file "lib${name}.so")
    endif()
    if(NOT type STREQUAL "OBJECT") # ndk-build has no prebuilt objects
        string(REGEX REPLACE "[^/]+" ".." up "${CMAKE_INSTALL_DATADIR}/${entry}")
        file(CONFIGURE OUTPUT "${CMAKE_CURRENT_BINARY_DIR}/tvm/${name}.Android.mk" @ONLY CONTENT
"LOCAL_PATH := \$(call my-dir)
include \$(CLEAR_VARS)
LOCAL_MODULE := @name@
LOCAL_SRC_FILES := @up@/@CMAKE_INSTALL_LIBDIR@/@file@
LOCAL_EXPORT_C_INCLUDES := \$(LOCAL_PATH)/@up@/@CMAKE_INSTALL_INCLUDEDIR@
LOCAL_EXPORT_LDLIBS := -lm
include \$(@kind@)
")
        install(FILES "${CMAKE_CURRENT_BINARY_DIR}/tvm/${name}.Android.mk"
            DESTINATION "${CMAKE_INSTALL_DATADIR}/${entry}" RENAME Android.mk ${component})
    endif()
endmacro()
