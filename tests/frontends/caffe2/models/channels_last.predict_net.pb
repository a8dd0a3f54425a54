
channels_last3
x
wc"Conv*

kernel*
pad*
order"NHWC
ca"Relu*
order"NHWC6
ap"MaxPool*

kernel*

stride*
order"NHWC3
p
vd"Conv*

kernel*
pad*
order"NHWC
d
py"Add:x:w:vBy