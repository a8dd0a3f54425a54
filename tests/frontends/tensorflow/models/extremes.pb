
.
xPlaceholder*
dtype0*
shape:

Expm1Expm1x*
T0
#
Expm1_1IdentityExpm1*
T0
.
yPlaceholder*
dtype0*
shape:
.
zPlaceholder*
dtype0*
shape:

Atan2Atan2yz*
T0
#
Atan2_1IdentityAtan2*
T0"ª