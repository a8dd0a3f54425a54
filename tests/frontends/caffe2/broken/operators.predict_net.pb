
	operators
xa"Foo
ac"Bar
cy"Foo:x:w:bBy