
operands
x
wy"FC:x:w:bBy