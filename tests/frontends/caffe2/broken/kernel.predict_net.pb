
kernel
xy"MaxPool:x:w:bBy