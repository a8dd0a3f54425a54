# LLVM through llvm-config, as the target `tvmcc_llvm`, and the linker in TVMCC_LINK_FLAGS.
#
# Linked statically by default: a driver that starts in a few milliseconds, needs no libLLVM where
# it runs, and cannot clash with another one in the same process.  A sanitized build links the
# shared library, because nothing is gained by linking it statically there.

set(TVMCC_LLVM_COMPONENTS x86 aarch64 arm riscv webassembly nvptx amdgpu irreader passes orcjit CACHE STRING
    "LLVM components; the first ones are the CPUs and GPUs that code is generated for")

find_program(LLVM_CONFIG NAMES llvm-config-19 llvm-config)
if(NOT LLVM_CONFIG)
    message(FATAL_ERROR "llvm-config-19 is missing: scripts/test installs what the build needs")
endif()

function(llvm_config out)
    execute_process(COMMAND "${LLVM_CONFIG}" ${ARGN} OUTPUT_VARIABLE text
        OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
    separate_arguments(text NATIVE_COMMAND "${text}")
    set(${out} "${text}" PARENT_SCOPE)
endfunction()

llvm_config(llvm_version --version)
if(llvm_version VERSION_LESS 19)
    message(FATAL_ERROR "${LLVM_CONFIG} is LLVM ${llvm_version}; 19 or later is needed")
endif()
llvm_config(llvm_includedir --includedir)
llvm_config(llvm_bindir --bindir)
llvm_config(llvm_linked --link-shared --ldflags --libs) # what tvmcc-compiler.pc names
list(JOIN llvm_linked " " llvm_linked)
add_library(tvmcc_llvm INTERFACE)
target_include_directories(tvmcc_llvm SYSTEM INTERFACE ${llvm_includedir})

if(TVMCC_STATIC_LLVM AND NOT TVMCC_SANITIZE)
    llvm_config(llvm_libraries --link-static --libfiles ${TVMCC_LLVM_COMPONENTS})
    llvm_config(llvm_system --link-static --system-libs ${TVMCC_LLVM_COMPONENTS})
    tvmcc_library(llvm_system SHARED ${llvm_system} STATIC -l:libzstd.a -l:libz.a -lm)
    target_link_libraries(tvmcc_llvm INTERFACE ${llvm_libraries} tvmcc_lib_llvm_system
        -l:libstdc++.a)
    # LLVM's tables are 280,000 addresses.  An executable that may lie anywhere writes all of them when it
    # starts, in 1,300 pages, which takes as long as all else until main.
    target_link_options(tvmcc_llvm INTERFACE $<$<STREQUAL:$<TARGET_PROPERTY:TYPE>,EXECUTABLE>:-no-pie>)
else()
    llvm_config(llvm_ldflags --ldflags)
    llvm_config(llvm_libraries --link-shared --libs)
    target_link_options(tvmcc_llvm INTERFACE ${llvm_ldflags})
    target_link_libraries(tvmcc_llvm INTERFACE ${llvm_libraries})
endif()

# lld links the static LLVM in a third of the time; where it is absent, the default linker does.
# --as-needed: llvm-config names z3 and libxml2, of which nothing is used.
set(TVMCC_LINK_FLAGS -Wl,--gc-sections -Wl,--as-needed)
if(EXISTS "${llvm_bindir}/ld.lld")
    list(APPEND TVMCC_LINK_FLAGS "-B${llvm_bindir}" -fuse-ld=lld)
endif()
if(CMAKE_BUILD_TYPE STREQUAL "Release")
    list(APPEND TVMCC_LINK_FLAGS -Wl,--strip-debug)
endif()
