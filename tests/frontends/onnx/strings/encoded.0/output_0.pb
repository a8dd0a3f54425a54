2
strawberry2sky2_Unused2_Unused