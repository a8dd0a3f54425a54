
good
x
w
by"FC:x:w:bBy