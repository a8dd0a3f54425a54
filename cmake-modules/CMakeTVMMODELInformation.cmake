# How the language TVMMODEL is compiled and linked.
#
#   project(app LANGUAGES C TVMMODEL)               # CMAKE_MODULE_PATH names the folder of this file
#   target_sources(app PRIVATE net.onnx)            # and #include "net.h" in app's sources
#
# One object for a model.  Flags as for C: CMAKE_TVMMODEL_FLAGS, CMAKE_TVMMODEL_FLAGS_<CONFIG>, and
# target_compile_options(app PRIVATE $<$<COMPILE_LANGUAGE:TVMMODEL>:-mcpu=haswell>).  The headers are
# made by rules that are added when the folder has been read: CMake knows no language whose sources give
# headers (tvmcc/language.cmake).
include("${CMAKE_CURRENT_LIST_DIR}/AddTvmModel.cmake")

_tvm_toolchain_triple(CMAKE_TVMMODEL_TRIPLE)
if(CMAKE_TVMMODEL_TRIPLE)
    set(CMAKE_TVMMODEL_FLAGS_INIT "--target=${CMAKE_TVMMODEL_TRIPLE}")
else()
    set(CMAKE_TVMMODEL_FLAGS_INIT "-Wno-baseline-cpu")
endif()
set(CMAKE_TVMMODEL_FLAGS_DEBUG_INIT "-O1")
set(CMAKE_TVMMODEL_FLAGS_RELEASE_INIT "-O3")
set(CMAKE_TVMMODEL_FLAGS_RELWITHDEBINFO_INIT "-O3")
set(CMAKE_TVMMODEL_FLAGS_MINSIZEREL_INIT "-Os")
cmake_initialize_per_config_variable(CMAKE_TVMMODEL_FLAGS "Flags of the model compiler")
set(CMAKE_TVMMODEL_COMPILE_OPTIONS_PIC -fPIC)
set(CMAKE_TVMMODEL_COMPILE_OPTIONS_PIE -fPIC)
set(CMAKE_TVMMODEL_COMPILE_OPTIONS_WARNING_AS_ERROR -Werror)

# What was read: Ninja and the Makefiles both take it from the compiler.
set(CMAKE_DEPFILE_FLAGS_TVMMODEL "-MD -MT <DEP_TARGET> -MF <DEP_FILE>")
set(CMAKE_TVMMODEL_DEPFILE_FORMAT gcc)
set(CMAKE_TVMMODEL_DEPENDS_USE_COMPILER TRUE)

# CMake obeys the launchers of its own languages only, so the rule names ours.
set(CMAKE_TVMMODEL_RULE_LAUNCHER "")
if(CMAKE_TVMMODEL_COMPILER_LAUNCHER)
    string(REPLACE ";" " " CMAKE_TVMMODEL_RULE_LAUNCHER "${CMAKE_TVMMODEL_COMPILER_LAUNCHER} ")
endif()
set(CMAKE_TVMMODEL_COMPILE_OBJECT
    "${CMAKE_TVMMODEL_RULE_LAUNCHER}<CMAKE_TVMMODEL_COMPILER> <FLAGS> -c <SOURCE> -o <OBJECT>")

# Targets that have models only.
set(CMAKE_TVMMODEL_ARCHIVE_CREATE "<CMAKE_AR> qc <TARGET> <LINK_FLAGS> <OBJECTS>")
set(CMAKE_TVMMODEL_ARCHIVE_APPEND "<CMAKE_AR> q <TARGET> <LINK_FLAGS> <OBJECTS>")
set(CMAKE_TVMMODEL_ARCHIVE_FINISH "<CMAKE_RANLIB> <TARGET>")
set(CMAKE_SHARED_LIBRARY_SONAME_TVMMODEL_FLAG "${CMAKE_SHARED_LIBRARY_SONAME_C_FLAG}")
set(CMAKE_TVMMODEL_CREATE_SHARED_LIBRARY "<CMAKE_C_COMPILER> <CMAKE_SHARED_LIBRARY_C_FLAGS> <LINK_FLAGS> \
${CMAKE_SHARED_LIBRARY_CREATE_C_FLAGS} <SONAME_FLAG><TARGET_SONAME> -o <TARGET> <OBJECTS> \
<LINK_LIBRARIES>")
set(CMAKE_TVMMODEL_CREATE_SHARED_MODULE "${CMAKE_TVMMODEL_CREATE_SHARED_LIBRARY}")
set(CMAKE_TVMMODEL_LINK_EXECUTABLE
    "<CMAKE_C_COMPILER> <FLAGS> <CMAKE_C_LINK_FLAGS> <LINK_FLAGS> <OBJECTS> -o <TARGET> <LINK_LIBRARIES>")

include("${CMAKE_CURRENT_LIST_DIR}/tvmcc/language.cmake")
cmake_language(DEFER CALL _tvm_language_headers)
set(CMAKE_TVMMODEL_INFORMATION_LOADED 1)
