
	arguments
xa"	LeakyRelu*
alfaмлл=
ay"Softmax*
axes:x:w:bBy