
output
x
w
by"FC:x:w:bBz