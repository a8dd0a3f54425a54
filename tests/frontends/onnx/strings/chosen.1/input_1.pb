2many2
more words