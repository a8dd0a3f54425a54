
products
x
w
bfc"FC 
x
u
bfc_axis"FC*
axis%
x
v
bfctransposed"FCTransposed
y
zmatmul"MatMul0
z
yturned"MatMul*
trans_a*
trans_b 
x
kbatchmatmul"BatchMatMul*
x
k2batch_b"BatchMatMul*
trans_b:x:y:z:k:k2:w:b:v:uBfcBfc_axisBfctransposedBmatmulBturnedBbatchmatmulBbatch_b