
kind_of_list
xy"	ReduceSum*
axes:x:w:bBy