# cmake -DFROM=<options> -DTO=<response file> -P words.cmake
#
# Options as CMake evaluates them, a line each, in the words that it would write into a command.
cmake_policy(VERSION 3.23)

function(add word)
    string(REGEX REPLACE "([\\\"])" "\\\\\\1" word "${word}")
    set(words "${words}\"${word}\"\n" PARENT_SCOPE)
endfunction()

file(READ "${FROM}" text)
set(words "")
while(text MATCHES "^([^\n]*)\n(.*)$")
    set(line "${CMAKE_MATCH_1}")
    set(text "${CMAKE_MATCH_2}")
    if(line MATCHES "^SHELL:(.*)")
        separate_arguments(parts UNIX_COMMAND "${CMAKE_MATCH_1}")
        foreach(part IN LISTS parts)
            add("${part}")
        endforeach()
    elseif(NOT line STREQUAL "")
        add("${line}")
    endif()
endwhile()
file(WRITE "${TO}" "${words}")
