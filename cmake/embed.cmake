# A file as C source: `cmake -DIN=abi.h -DOUT=abi_header.c -DNAME=abi_header_text -P embed.cmake`
# defines `const unsigned char <NAME>[]` and `const size_t <NAME>_bytes`.
cmake_minimum_required(VERSION 3.23)
file(READ "${IN}" hex HEX)
file(SIZE "${IN}" bytes)
string(REGEX REPLACE "(................................)" "\\1\n" hex "${hex}")
string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," hex "${hex}")
file(CONFIGURE OUTPUT "${OUT}" CONTENT "#include <stddef.h>
extern const unsigned char @NAME@[];
extern const size_t @NAME@_bytes;
const unsigned char @NAME@[] = {
@hex@
};
const size_t @NAME@_bytes = @bytes@;
" @ONLY)
