# The keywords of add_tvm_model(): the only list of them, and the reading of a call.

# Into the scope of the caller, which may see none of the variables of the folder that found us.
macro(_tvm_tables)
    # Flags, keywords with one value, keywords with several.
    set(TVM_KEYWORD_FLAGS EXCLUDE_FROM_ALL VERBOSE WERROR BENCHMARK NO_LIBM PER_LAYER REFITTABLE)
    set(TVM_KEYWORD_ONES MODEL MODEL_FORMAT SIGNATURE MANIFEST MANIFEST_MODEL MANIFEST_PAIR ENTRY HEADER TYPE EXECUTOR
        THREADS WEIGHTS WEIGHTS_SECTION WEIGHTS_DTYPE MIXED_PRECISION_CALCULATION MIXED_PRECISION_ACCUMULATE PIC HOST_TARGET OPT_LEVEL FAST_MATH MACHINE TUNING_POLICY
        TUNING_MIN_COVERAGE ARENA_LIMIT CODE_LIMIT WEIGHTS_LIMIT ARCHIVE ARCHIVE_FORMAT LAYOUT TEST_INPUTS TEST_OUTPUTS RTOL ATOL
        OUTPUT_DIRECTORY SHARDS JOB_POOL EXPORT_SET)
    set(TVM_KEYWORD_LISTS INPUT_SHAPES INPUT_DTYPES INPUT_VALUES DEFINE_DIMS SHAPE_BUCKETS OUTPUTS STATE TARGETS
        CPU_VARIANTS TUNING_LOGS DISABLED_PASSES REQUIRED_PASSES MIXED_PRECISION COMPILE_OPTIONS EMIT ARCHIVE_CONTENTS DEPENDS
        LINK_LIBRARIES LAUNCHER)

    # Known, but without a meaning yet: "<keyword> <why>".  They are refused, so that none is ignored.
    set(TVM_KEYWORD_REFUSED
        "CUDA_ARCHITECTURES a target names its GPUs: TARGETS \"cuda -arch=sm_80\""
        "BYOC there are no other compilers to hand operators to"
        "PASS_CONFIG passes have no settings"
        "DESIRED_LAYOUT the compiler chooses layouts itself"
        "QUANTIZE quantize the model before, for example to QDQ form in ONNX"
        "MEMORY_POOLS a model has one arena"
        "ALIGNMENT arenas are aligned as <ENTRY>_ARENA_ALIGN of the header says"
        "STACK_LIMIT kernels have no bound of their stack")

    # Values that the contract names but that do not exist yet: "<keyword> <value> <why>".
    set(TVM_VALUES_REFUSED
        "EXECUTOR GRAPH models are compiled ahead of time: EXECUTOR AOT is all there is"
        "EXECUTOR VM models are compiled ahead of time: EXECUTOR AOT is all there is"
        "THREADS OPENMP give a launch function that uses OpenMP to <entry>_run_ex, with THREADS CALLER")

    # Keywords that the variable TVM_<keyword> sets for all models of a project.
    set(TVM_KEYWORD_DEFAULTS TYPE THREADS WEIGHTS PIC TARGETS HOST_TARGET MACHINE OPT_LEVEL FAST_MATH NO_LIBM
        ARENA_LIMIT CODE_LIMIT WEIGHTS_LIMIT TUNING_LOGS TUNING_POLICY TUNING_MIN_COVERAGE COMPILE_OPTIONS SHARDS
        JOB_POOL WERROR VERBOSE)

    # -O by configuration: Debug 1, MinSizeRel s, else 3.
    set(TVM_OPT_LEVEL_OF_CONFIG "-O$<IF:$<CONFIG:Debug>,1,$<IF:$<CONFIG:MinSizeRel>,s,3>>")
endmacro()

# _tvm_place(<variable> <function> <name>): "CMakeLists.txt:7: ", where the project calls the function for this
# name.  CMake tells nobody the line of a call, and prints one of ours first; so it is looked for in the text.
function(_tvm_place out function name)
    set(file "${CMAKE_CURRENT_LIST_FILE}")
    set(text "")
    if(EXISTS "${file}")
        file(READ "${file}" text)
    endif()
    string(REGEX REPLACE "([][+.*()^$?|\\\\])" "\\\\\\1" pattern "${name}")
    string(REGEX MATCH "(^|\n)[ \t]*${function}[ \t]*\\([ \t\r\n]*\"?${pattern}[ \t\r\n\")]" call "${text}")
    cmake_path(IS_PREFIX CMAKE_SOURCE_DIR "${file}" NORMALIZE inside)
    if(inside)
        cmake_path(RELATIVE_PATH file BASE_DIRECTORY "${CMAKE_SOURCE_DIR}")
    endif()
    set(place "${file}: ")
    if(NOT call STREQUAL "")
        string(FIND "${text}" "${call}" at)
        string(SUBSTRING "${text}" 0 ${at} before)
        string(REGEX REPLACE "[^\n]" "" before "${before}")
        string(LENGTH "${before}" line)
        math(EXPR line "${line} + 1")
        if(call MATCHES "^\n")
            math(EXPR line "${line} + 1")
        endif()
        set(place "${file}:${line}: ")
    endif()
    set(${out} "${place}" PARENT_SCOPE)
endfunction()

# Ends the configuration with "<file>:<line>: <function>(<name>): <message>".
function(_tvm_fail name)
    get_property(function GLOBAL PROPERTY TVM_FUNCTION)
    _tvm_place(place "${function}" "${name}")
    list(JOIN ARGN "" text)
    message(FATAL_ERROR "${place}${function}(${name}): ${text}")
endfunction()

# The name of a target that is going to be made.
function(_tvm_target_name name)
    if(name STREQUAL "")
        _tvm_fail("" "the name is empty")
    elseif(NOT name MATCHES "^[A-Za-z0-9_.+-]+$")
        string(REGEX REPLACE "[^A-Za-z0-9_.+-]+" "_" better "${name}")
        _tvm_fail("${name}" "a target cannot have that name, but '${better}' would do")
    endif()
    # Those that generators and CTest and CPack make.
    if(name MATCHES "^(all|ALL_BUILD|help|install|INSTALL|preinstall|clean|edit_cache|rebuild_cache|ZERO_CHECK|test|\
RUN_TESTS|package|PACKAGE|package_source)$")
        _tvm_fail("${name}" "CMake reserves that name, but 'model_${name}' would do")
    endif()
    if(TARGET "${name}")
        _tvm_fail("${name}" "there is already a target of that name")
    endif()
endfunction()

# Edit distance of two words, where swapped neighbours count one: the compiler's own (base/str.c).
function(_tvm_distance a b out)
    string(LENGTH "${a}" n)
    string(LENGTH "${b}" m)
    set(last_a "")
    foreach(i RANGE ${n})
        set(d_${i}_0 ${i})
    endforeach()
    foreach(j RANGE ${m})
        set(d_0_${j} ${j})
    endforeach()
    foreach(i RANGE 1 ${n})
        math(EXPR i1 "${i} - 1")
        math(EXPR i2 "${i} - 2")
        string(SUBSTRING "${a}" ${i1} 1 ca)
        set(last_b "")
        foreach(j RANGE 1 ${m})
            math(EXPR j1 "${j} - 1")
            math(EXPR j2 "${j} - 2")
            string(SUBSTRING "${b}" ${j1} 1 cb)
            math(EXPR best "${d_${i1}_${j}} + 1")
            math(EXPR insert "${d_${i}_${j1}} + 1")
            set(replace ${d_${i1}_${j1}})
            if(NOT "x${ca}" STREQUAL "x${cb}")
                math(EXPR replace "${replace} + 1")
            endif()
            set(swap ${best})
            if(i GREATER 1 AND j GREATER 1 AND "x${ca}" STREQUAL "x${last_b}" AND "x${cb}" STREQUAL "x${last_a}")
                math(EXPR swap "${d_${i2}_${j2}} + 1")
            endif()
            foreach(other IN ITEMS ${insert} ${replace} ${swap})
                if(other LESS best)
                    set(best ${other})
                endif()
            endforeach()
            set(d_${i}_${j} ${best})
            set(last_b "${cb}")
        endforeach()
        set(last_a "${ca}")
    endforeach()
    set(${out} ${d_${n}_${m}} PARENT_SCOPE)
endfunction()

# " (did you mean 'X'?)" if one of the words is near, else nothing.  As the compiler has it: at most
# a third of the word is wrong, and not all of the other; so one letter has no neighbours.
function(_tvm_hint word out)
    set(hint "")
    string(LENGTH "${word}" length)
    math(EXPR limit "${length} / 3 + 1")
    foreach(candidate IN LISTS ARGN)
        string(LENGTH "${candidate}" other)
        math(EXPR least "${other} - ${length}") # so many letters are missing
        if(length EQUAL 0 OR other EQUAL 0 OR NOT least LESS limit)
            continue()
        endif()
        _tvm_distance("${word}" "${candidate}" d)
        if(d LESS limit AND d LESS other)
            set(hint " (did you mean '${candidate}'?)")
            set(limit ${d})
        endif()
    endforeach()
    set(${out} "${hint}" PARENT_SCOPE)
endfunction()

# _tvm_parse(<name> <flags> <ones> <lists> <refused> <argument>...): sets A_<keyword> in the caller.
# Unlike cmake_parse_arguments a mistyped keyword is not taken for a value of the one before it.
function(_tvm_parse name flags ones lists refused)
    set(all ${flags} ${ones} ${lists})
    set(reasons "${refused}")
    list(TRANSFORM refused REPLACE " .*" "") # each row: the keyword, then why
    set(words_may_be_upper INPUT_VALUES DEPENDS LINK_LIBRARIES SHAPE_BUCKETS OUTPUTS STATE TARGETS LAUNCHER COMPILE_OPTIONS MODELS)
    set(current "")
    foreach(arg IN LISTS ARGN)
        if(arg IN_LIST all)
            if(DEFINED A_${arg} OR arg STREQUAL current)
                _tvm_fail("${name}" "${arg} is given twice")
            endif()
            if(arg IN_LIST flags)
                set(A_${arg} TRUE)
                set(current "")
            else()
                set(current "${arg}")
            endif()
        elseif(arg IN_LIST refused)
            list(FIND refused "${arg}" i)
            list(GET reasons ${i} reason)
            string(REGEX MATCH " (.*)" reason "${reason}")
            set(reason "${CMAKE_MATCH_1}")
            _tvm_fail("${name}" "${arg} is not supported: ${reason}")
        elseif(current IN_LIST ones AND NOT DEFINED A_${current})
            set(A_${current} "${arg}")
        elseif(current IN_LIST lists AND (current IN_LIST words_may_be_upper
                                          OR NOT arg MATCHES "^[A-Z][A-Z0-9_]+$"))
            list(APPEND A_${current} "${arg}")
        elseif(arg MATCHES "^[A-Z][A-Z0-9_]+$")
            _tvm_hint("${arg}" hint ${all} ${refused})
            _tvm_fail("${name}" "unknown keyword '${arg}'${hint}")
        else()
            _tvm_fail("${name}" "'${arg}' belongs to no keyword")
        endif()
    endforeach()
    foreach(keyword IN LISTS ones lists)
        if(keyword IN_LIST ARGN AND NOT DEFINED A_${keyword})
            _tvm_fail("${name}" "${keyword} needs a value")
        endif()
    endforeach()
    foreach(keyword IN LISTS all)
        if(DEFINED A_${keyword})
            set(A_${keyword} "${A_${keyword}}" PARENT_SCOPE)
        else()
            unset(A_${keyword} PARENT_SCOPE)
        endif()
    endforeach()
endfunction()

# _tvm_choice(<keyword> <word>...): one of the words, the first by default.
macro(_tvm_choice keyword)
    set(words ${ARGN})
    if(NOT DEFINED A_${keyword})
        list(GET words 0 A_${keyword})
    elseif(NOT A_${keyword} IN_LIST words)
        foreach(row IN LISTS TVM_VALUES_REFUSED)
            if(row MATCHES "^${keyword} ${A_${keyword}} (.*)")
                _tvm_fail("${name}" "${keyword} ${A_${keyword}} is not supported: ${CMAKE_MATCH_1}")
            endif()
        endforeach()
        _tvm_hint("${A_${keyword}}" hint ${words})
        list(JOIN words ", " words)
        _tvm_fail("${name}" "${keyword} is '${A_${keyword}}', not one of ${words}${hint}")
    endif()
endmacro()

# Values from TVM_<keyword>, where the call has none.
macro(_tvm_project_defaults)
    foreach(keyword IN LISTS TVM_KEYWORD_DEFAULTS)
        if(NOT DEFINED A_${keyword} AND DEFINED TVM_${keyword} AND NOT "${TVM_${keyword}}" STREQUAL "")
            set(A_${keyword} "${TVM_${keyword}}")
        endif()
    endforeach()
endmacro()

# _tvm_both(<a> <b>): one without the other is an error.
macro(_tvm_both a b)
    if(DEFINED A_${a} AND NOT DEFINED A_${b} OR NOT DEFINED A_${a} AND DEFINED A_${b})
        _tvm_fail("${name}" "${a} and ${b} go together")
    endif()
endmacro()

# _tvm_needs(<needed> <keyword>...): keywords that mean nothing without another.
macro(_tvm_needs needed)
    if(NOT DEFINED A_${needed})
        foreach(keyword IN ITEMS ${ARGN})
            if(DEFINED A_${keyword})
                _tvm_fail("${name}" "${keyword} needs ${needed}")
            endif()
        endforeach()
    endif()
endmacro()

macro(_tvm_absolute variable base)
    if(DEFINED ${variable})
        cmake_path(ABSOLUTE_PATH ${variable} BASE_DIRECTORY "${base}" NORMALIZE)
    endif()
endmacro()
