# The commands that compile a model, and where their files go.
#
# Sets in the scope of the caller: dir, header, metadata, objects, weights (empty when they are in an
# object), and products, which stand for all of them.  `dir` and what lies in it may hold $<CONFIG>.

macro(_tvm_places)
    if(NOT DEFINED A_OUTPUT_DIRECTORY)
        set(A_OUTPUT_DIRECTORY "tvm/${name}")
    endif()
    _tvm_absolute(A_OUTPUT_DIRECTORY "${CMAKE_CURRENT_BINARY_DIR}")
    set(dir "${A_OUTPUT_DIRECTORY}")
    get_property(multi_config GLOBAL PROPERTY GENERATOR_IS_MULTI_CONFIG)
    set(configs none)
    if(CMAKE_BUILD_TYPE)
        set(configs "${CMAKE_BUILD_TYPE}")
    endif()
    if(multi_config)
        set(configs ${CMAKE_CONFIGURATION_TYPES})
        if(NOT dir MATCHES "\\$<CONFIG>")
            string(APPEND dir "/$<CONFIG>")
        endif()
    else()
        string(REPLACE "$<CONFIG>" "${CMAKE_BUILD_TYPE}" dir "${dir}")
    endif()
    set(stem "${dir}/${A_ENTRY}")
    set(header "${stem}.h")
    if(DEFINED A_HEADER)
        set(header "${dir}/${A_HEADER}")
    endif()
    set(metadata "${stem}.json")
    get_property(abi_header GLOBAL PROPERTY TVMCC_ABI_HEADER)
    foreach(config IN LISTS configs)
        string(REPLACE "$<CONFIG>" "${config}" place "${dir}")
        file(MAKE_DIRECTORY "${place}/tvmcc")
        configure_file("${abi_header}" "${place}/tvmcc/abi.h" COPYONLY)
    endforeach()
    if(NOT DEFINED A_LAUNCHER AND CMAKE_TVMMODEL_COMPILER_LAUNCHER)
        set(A_LAUNCHER ${CMAKE_TVMMODEL_COMPILER_LAUNCHER})
    endif()
    set(pool)
    if(DEFINED A_JOB_POOL)
        set(pool JOB_POOL "${A_JOB_POOL}")
    endif()
    cmake_path(GET A_MODEL FILENAME model_file)
endmacro()

# _tvm_command(OUTPUT <file>... [BEFORE <word>...] COMMAND <word>... [AFTER <word>...] [DEPENDS <file>...]
#              [DEPFILE <file>] COMMENT <text> [JOB_POOL <pool>])
#
# A rule whose command leaves files alone that do not change.  Ninja knows such rules (restat).  Make
# would run the command again and again, so there a stamp is the output, and the files come along:
# what uses them keeps its time.
function(_tvm_command)
    cmake_parse_arguments(PARSE_ARGV 0 C "" "DEPFILE;COMMENT;JOB_POOL" "OUTPUT;BEFORE;COMMAND;AFTER;DEPENDS")
    list(GET C_OUTPUT 0 first)
    set(outputs OUTPUT ${C_OUTPUT})
    set(before)
    if(C_BEFORE)
        set(before COMMAND ${C_BEFORE})
    endif()
    set(after)
    if(C_AFTER)
        set(after COMMAND ${C_AFTER})
    endif()
    if(CMAKE_GENERATOR MATCHES "Makefiles")
        string(APPEND first ".stamp")
        set(outputs OUTPUT "${first}" BYPRODUCTS ${C_OUTPUT})
        list(APPEND after COMMAND "${CMAKE_COMMAND}" -E touch "${first}")
        foreach(file IN LISTS C_OUTPUT)
            set_property(GLOBAL PROPERTY "TVM_STAMP ${file}" "${first}")
        endforeach()
    endif()
    _tvm_ends(depends ${C_DEPENDS})
    if(TARGET Tvmcc::tvmcc)
        list(APPEND depends Tvmcc::tvmcc)
    endif()
    set(depfile)
    if(DEFINED C_DEPFILE)
        list(APPEND C_COMMAND -MD -MF "${C_DEPFILE}" -MT "${first}")
        set(depfile DEPFILE "${C_DEPFILE}")
    endif()
    set(pool)
    if(DEFINED C_JOB_POOL)
        set(pool JOB_POOL "${C_JOB_POOL}")
    endif()
    add_custom_command(${outputs}
        ${before}
        COMMAND ${C_COMMAND}
        ${after}
        DEPENDS ${depends}
        ${depfile}
        COMMENT "${C_COMMENT}"
        ${pool} COMMAND_EXPAND_LISTS VERBATIM)
endfunction()

# _tvm_ends(<variable> <file>...): what depends on these files must name: themselves, or their stamps.
function(_tvm_ends variable)
    set(ends "")
    foreach(file IN LISTS ARGN)
        get_property(stamp GLOBAL PROPERTY "TVM_STAMP ${file}")
        if(stamp)
            set(file "${stamp}")
        endif()
        list(APPEND ends "${file}")
    endforeach()
    list(REMOVE_DUPLICATES ends)
    set(${variable} "${ends}" PARENT_SCOPE)
endfunction()

# docs/design/build.md: lower, codegen for each shard, host, blob, header.  What lower writes depends on
# no value of the weights but for <stem>.weights, and no step writes a file whose bytes it does not
# change: other weights run no code generation, and other arithmetic compiles the kernels that have it.
macro(_tvm_steps)
    set(tvmcc $<TARGET_FILE:Tvmcc::tvmcc>)
    set(say)
    if(A_VERBOSE)
        set(say -v)
    endif()
    _tvm_command(OUTPUT "${stem}.plan" "${stem}.id" "${stem}.weights"
        COMMAND ${tvmcc} "${A_MODEL}" ${arguments} --emit=plan,id,weights -o "${stem}" -j1
        DEPENDS "${A_MODEL}" ${A_DEPENDS}
        DEPFILE "${stem}.d"
        COMMENT "Reading model ${model_file} for ${name}")

    set(copy_header)
    if(DEFINED A_HEADER)
        set(copy_header AFTER "${CMAKE_COMMAND}" -E copy_if_different "${stem}.h" "${header}")
    endif()
    _tvm_command(OUTPUT "${header}" "${metadata}"
        COMMAND ${tvmcc} "${stem}.plan" "${stem}.id" --emit=h,json -o "${stem}"
        ${copy_header}
        DEPENDS "${stem}.plan" "${stem}.id"
        COMMENT "Writing the header of ${name}")

    set(objects "")
    if(source)
        _tvm_command(OUTPUT "${stem}.c"
            COMMAND ${A_LAUNCHER} ${tvmcc} "${stem}.plan" "${stem}.id" "${stem}.weights" --emit=c -o "${stem}.c" -j1 ${say}
            DEPENDS "${stem}.plan" "${stem}.id" "${stem}.weights" "${header}"
            COMMENT "Writing ${name} as C" ${pool})
        list(APPEND objects "${stem}.c")
    elseif(shards GREATER 0)
        math(EXPR last "${shards} - 1")
        foreach(i RANGE ${last})
            _tvm_command(OUTPUT "${stem}.${i}.o"
                COMMAND ${A_LAUNCHER} ${tvmcc} "${stem}.plan" --shard=${i}/${shards} -c -o "${stem}.${i}.o" -j1 ${say}
                    ${cache}
                DEPENDS "${stem}.plan"
                COMMENT "Compiling kernels of ${name} (${i}/${shards})" ${pool})
            list(APPEND objects "${stem}.${i}.o")
        endforeach()
    endif()
    if(NOT source)
        _tvm_command(OUTPUT "${stem}.host.o"
            COMMAND ${A_LAUNCHER} ${tvmcc} "${stem}.plan" "${stem}.id" --shard=host -c -o "${stem}.host.o" -j1 ${say}
                ${cache}
            DEPENDS "${stem}.plan" "${stem}.id"
            COMMENT "Compiling the entry of ${name}" ${pool})
        list(APPEND objects "${stem}.host.o")
    endif()
    set(weights "")
    if(A_WEIGHTS MATCHES "^(FILE|EXTERN)$")
        set(weights "${stem}.weights")
    elseif(NOT source)
        _tvm_command(OUTPUT "${stem}.weights.o"
            COMMAND ${tvmcc} "${stem}.plan" "${stem}.weights" --shard=weights -c -o "${stem}.weights.o"
            DEPENDS "${stem}.plan" "${stem}.weights"
            COMMENT "Writing the weights of ${name}")
        list(APPEND objects "${stem}.weights.o")
    endif()
    _tvm_ends(products "${header}" "${metadata}" ${objects} ${weights})
    foreach(config IN LISTS configs)
        string(REPLACE "$<CONFIG>" "${config}" places "${objects}")
        set_source_files_properties(${places} PROPERTIES GENERATED TRUE)
        if(source)
            set_property(SOURCE ${places} APPEND PROPERTY COMPILE_OPTIONS ${compiler_options})
        else()
            set_source_files_properties(${places} PROPERTIES EXTERNAL_OBJECT TRUE)
        endif()
    endforeach()
endmacro()

# What people read: the model in the languages of the compiler.
macro(_tvm_emit)
    if(DEFINED A_EMIT)
        set(files "")
        foreach(kind IN LISTS A_EMIT)
            if(kind MATCHES "^(o|a|so|h|json|plan|id|weights|tar|zip)$|^tar\\.")
                _tvm_fail("${name}" "EMIT has '${kind}', a product: see TYPE, HEADER, WEIGHTS, ARCHIVE")
            endif()
            list(APPEND files "${stem}.${kind}")
        endforeach()
        list(JOIN A_EMIT "," emit)
        list(LENGTH A_EMIT n)
        set(output "${stem}")
        if(n EQUAL 1) # then -o is the whole name
            set(output "${files}")
        endif()
        _tvm_command(OUTPUT ${files}
            COMMAND $<TARGET_FILE:Tvmcc::tvmcc> "${A_MODEL}" --emit=${emit} -o "${output}" ${arguments}
            DEPENDS "${A_MODEL}" ${A_DEPENDS}
            DEPFILE "${stem}.emit.d"
            COMMENT "Writing model ${model_file} for ${name} as ${emit}")
        _tvm_ends(files ${files})
        add_custom_target(${name}.emit ${all} DEPENDS ${files})
    endif()
endmacro()
