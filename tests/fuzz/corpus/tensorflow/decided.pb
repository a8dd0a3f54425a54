
2
cPlaceholder*
dtype0
*
shape
:
.
xPlaceholder*
dtype0*
shape:

WhereWherec*
T0

#
Where_1IdentityWhere*
T0	
+
UniqueUniquex*
T0*
out_idx0
%
Unique_0IdentityUnique*
T0
'
Unique_1IdentityUnique:1*
T0
?
UniqueWithCountsUniqueWithCountsx*
T0*
out_idx0	
9
UniqueWithCounts_0IdentityUniqueWithCounts*
T0
;
UniqueWithCounts_1IdentityUniqueWithCounts:1*
T0	
;
UniqueWithCounts_2IdentityUniqueWithCounts:2*
T0	"ª