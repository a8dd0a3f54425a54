
2
xPlaceholder*
dtype0*
shape
:
.
yPlaceholder*
dtype0*
shape:

AddV2AddV2xy*
T0
#
AddV2_1IdentityAddV2*
T0

SubSubxy*
T0

Sub_1IdentitySub*
T0

MulMulxy*
T0

Mul_1IdentityMul*
T0

DivDivxy*
T0

Div_1IdentityDiv*
T0
)
TruncateDivTruncateDivxy*
T0
/
TruncateDiv_1IdentityTruncateDiv*
T0
#
FloorDivFloorDivxy*
T0
)

FloorDiv_1IdentityFloorDiv*
T0
#
FloorModFloorModxy*
T0
)

FloorMod_1IdentityFloorMod*
T0

ModModxy*
T0

Mod_1IdentityMod*
T0
)
TruncateModTruncateModxy*
T0
/
TruncateMod_1IdentityTruncateMod*
T0
!
MaximumMaximumxy*
T0
'
	Maximum_1IdentityMaximum*
T0
!
MinimumMinimumxy*
T0
'
	Minimum_1IdentityMinimum*
T0
'

BitwiseAnd
BitwiseAndxy*
T0
-
BitwiseAnd_1Identity
BitwiseAnd*
T0
%
	BitwiseOr	BitwiseOrxy*
T0
+
BitwiseOr_1Identity	BitwiseOr*
T0
'

BitwiseXor
BitwiseXorxy*
T0
-
BitwiseXor_1Identity
BitwiseXor*
T0
=
EqualEqualxy*
T0*
incompatible_shape_error(
#
Equal_1IdentityEqual*
T0


LessLessxy*
T0
!
Less_1IdentityLess*
T0

.
sPlaceholder*
dtype0*
shape:
%
	LeftShift	LeftShiftxs*
T0
+
LeftShift_1Identity	LeftShift*
T0
'

RightShift
RightShiftxs*
T0
-
RightShift_1Identity
RightShift*
T0

PowPowxs*
T0
 
PowIntIdentityPow*
T0

SquareSquarex*
T0
&
	SquareIntIdentitySquare*
T0"ª