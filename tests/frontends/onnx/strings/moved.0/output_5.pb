2
seventeenb