
6
xPlaceholder*
dtype0*
shape:
2
yPlaceholder*
dtype0*
shape
:

AddAddxy*
T0

Add_1IdentityAdd*
T0

AddV2AddV2xy*
T0
#
AddV2_1IdentityAddV2*
T0

SubSubxy*
T0

Sub_1IdentitySub*
T0

MulMulxy*
T0

Mul_1IdentityMul*
T0
!
RealDivRealDivxy*
T0
'
	RealDiv_1IdentityRealDiv*
T0

DivDivxy*
T0

Div_1IdentityDiv*
T0
!
MaximumMaximumxy*
T0
'
	Maximum_1IdentityMaximum*
T0
!
MinimumMinimumxy*
T0
'
	Minimum_1IdentityMinimum*
T0

LessLessxy*
T0
!
Less_1IdentityLess*
T0

%
	LessEqual	LessEqualxy*
T0
+
LessEqual_1Identity	LessEqual*
T0

!
GreaterGreaterxy*
T0
'
	Greater_1IdentityGreater*
T0

+
GreaterEqualGreaterEqualxy*
T0
1
GreaterEqual_1IdentityGreaterEqual*
T0

=
EqualEqualxy*
T0*
incompatible_shape_error(
#
Equal_1IdentityEqual*
T0

C
NotEqualNotEqualxy*
T0*
incompatible_shape_error(
)

NotEqual_1IdentityNotEqual*
T0

5
SquaredDifferenceSquaredDifferencexy*
T0
;
SquaredDifference_1IdentitySquaredDifference*
T0
#
FloorDivFloorDivxy*
T0
)

FloorDiv_1IdentityFloorDiv*
T0
#
FloorModFloorModxy*
T0
)

FloorMod_1IdentityFloorMod*
T0
#
DivNoNanDivNoNanxy*
T0
)

DivNoNan_1IdentityDivNoNan*
T0

XdivyXdivyxy*
T0
#
Xdivy_1IdentityXdivy*
T0

XlogyXlogyxy*
T0
#
Xlogy_1IdentityXlogy*
T0
!
Xlog1pyXlog1pyxy*
T0
'
	Xlog1py_1IdentityXlog1py*
T0
#
MulNoNanMulNoNanxy*
T0
)

MulNoNan_1IdentityMulNoNan*
T0
)
TruncateModTruncateModxy*
T0
/
TruncateMod_1IdentityTruncateMod*
T0

ModModxy*
T0

Mod_1IdentityMod*
T0

PowPowyx*
T0

Pow_1IdentityPow*
T0

NegNegy*
T0

Atan2Atan2xNeg*
T0
#
Atan2_1IdentityAtan2*
T0
.
zPlaceholder*
dtype0*
shape:
.
wPlaceholder*
dtype0*
shape:
%

DivNoNan_2DivNoNanzw*
T0
-
DivNoNanZeroIdentity
DivNoNan_2*
T0

Xdivy_2Xdivyzw*
T0
'
	XdivyZeroIdentityXdivy_2*
T0

Xlogy_2Xlogyzw*
T0
'
	XlogyZeroIdentityXlogy_2*
T0
%

MulNoNan_2MulNoNanzw*
T0
-
MulNoNanZeroIdentity
MulNoNan_2*
T0

Atan2_2Atan2zw*
T0
'
	Atan2ZeroIdentityAtan2_2*
T0
#
	Xlog1py_2Xlog1pyzw*
T0
+
Xlog1pyZeroIdentity	Xlog1py_2*
T0"ª