# add_tvm_model(): a trained model as a library.
#
#   find_package(Tvmcc REQUIRED)
#   add_tvm_model(resnet MODEL resnet50.onnx INPUT_SHAPES "data:[1,3,224,224]")
#   target_link_libraries(app PRIVATE resnet)              # and #include "resnet.h"
#
# docs/how-to/cmake.md is the reference of all functions, keywords, variables and properties.
#
#   tvmcc/keywords.cmake     the table of keywords, reading a call, "did you mean"
#   tvmcc/toolchain.cmake    what follows from the toolchain: triple, -O, -fPIC
#   tvmcc/arguments.cmake    keywords to options, the question whether they fit; tvm_define_target
#   tvmcc/steps.cmake        the commands that compile
#   tvmcc/library.cmake      library, checks, test and benchmark of a model
#   tvmcc/deploy.cmake       archives, tvm_model_archive, tvm_install_model
#   tvmcc/manifest.cmake     tvm_import_manifest
#   tvmcc/language.cmake     headers of the language TVMMODEL
#
# No function sets a cache variable or a flag of the project, and none needs the network.

include_guard(GLOBAL)
cmake_policy(VERSION 3.23)

set_property(GLOBAL PROPERTY TVMCC_MODULES "${CMAKE_CURRENT_LIST_DIR}")

# Where abi.h lies: in the source tree, or below the prefix that this file was installed to.
foreach(_tvmcc_dir IN ITEMS ../include ../../../include ../../../../include)
    cmake_path(ABSOLUTE_PATH _tvmcc_dir BASE_DIRECTORY "${CMAKE_CURRENT_LIST_DIR}" NORMALIZE)
    if(EXISTS "${_tvmcc_dir}/tvmcc/abi.h")
        set_property(GLOBAL PROPERTY TVMCC_ABI_HEADER "${_tvmcc_dir}/tvmcc/abi.h")
        break()
    endif()
endforeach()
unset(_tvmcc_dir)

include("${CMAKE_CURRENT_LIST_DIR}/tvmcc/keywords.cmake")
include("${CMAKE_CURRENT_LIST_DIR}/tvmcc/toolchain.cmake")
include("${CMAKE_CURRENT_LIST_DIR}/tvmcc/arguments.cmake")
include("${CMAKE_CURRENT_LIST_DIR}/tvmcc/steps.cmake")
include("${CMAKE_CURRENT_LIST_DIR}/tvmcc/library.cmake")
include("${CMAKE_CURRENT_LIST_DIR}/tvmcc/deploy.cmake")
include("${CMAKE_CURRENT_LIST_DIR}/tvmcc/manifest.cmake")

# The library <name>, with the alias <name>::<name>.
function(add_tvm_model name)
    set_property(GLOBAL PROPERTY TVM_FUNCTION add_tvm_model)
    _tvm_tables()
    _tvm_parse("${name}" "${TVM_KEYWORD_FLAGS}" "${TVM_KEYWORD_ONES}" "${TVM_KEYWORD_LISTS}"
        "${TVM_KEYWORD_REFUSED}" ${ARGN})
    _tvm_target_name("${name}")
    _tvm_keywords()
    _tvm_arguments()
    _tvm_places()
    _tvm_steps()
    _tvm_library()
    _tvm_package()
    if(NOT source) # audits are about code of ours
        _tvm_audit()
    endif()
    _tvm_emit()
    _tvm_archive()
    _tvm_verify()
    _tvm_benchmark()
endfunction()

# tvm_generate(<variable> MODEL <file> ...): only the files, for a library of your own.  Takes the
# keywords of add_tvm_model() that are about compiling.  Sets <variable> to the objects, and
# <variable>_HEADER, _INCLUDE_DIR, _METADATA, _WEIGHTS_FILE.
function(tvm_generate variable)
    set_property(GLOBAL PROPERTY TVM_FUNCTION tvm_generate)
    _tvm_tables()
    set(ones ${TVM_KEYWORD_ONES})
    set(lists ${TVM_KEYWORD_LISTS})
    set(others MANIFEST MANIFEST_MODEL MANIFEST_PAIR TYPE ARCHIVE ARCHIVE_FORMAT ARCHIVE_CONTENTS LAYOUT TEST_INPUTS TEST_OUTPUTS RTOL ATOL EXPORT_SET EMIT LINK_LIBRARIES
        EXCLUDE_FROM_ALL BENCHMARK PER_LAYER)
    list(REMOVE_ITEM ones ${others})
    list(REMOVE_ITEM lists ${others})
    list(TRANSFORM others APPEND " it is about a library: see add_tvm_model")
    _tvm_parse("${variable}" "VERBOSE;WERROR;NO_LIBM" "${ones}" "${lists}" "${TVM_KEYWORD_REFUSED};${others}" ${ARGN})
    set(name "${variable}")
    unset(TVM_TYPE)
    _tvm_keywords()
    set(A_TYPE "")
    _tvm_arguments()
    _tvm_places()
    _tvm_steps()
    set(${variable} ${objects} PARENT_SCOPE)
    set(${variable}_HEADER "${header}" PARENT_SCOPE)
    set(${variable}_INCLUDE_DIR "${dir}" PARENT_SCOPE)
    set(${variable}_METADATA "${metadata}" PARENT_SCOPE)
    set(${variable}_WEIGHTS_FILE "${weights}" PARENT_SCOPE)
endfunction()
