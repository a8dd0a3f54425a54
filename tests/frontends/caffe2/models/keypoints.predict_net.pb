
	keypointsD
maps
boxesshares"HeatmapMaxKeypoint*
should_output_softmax5
maps
boxesheatmapmaxkeypoint"HeatmapMaxKeypoint:maps:boxesBsharesBheatmapmaxkeypoint