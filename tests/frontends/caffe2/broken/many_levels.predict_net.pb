
many_levels!
xyz"DistributeFpnProposals:x:w:bBy