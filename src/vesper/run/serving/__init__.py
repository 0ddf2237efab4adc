"""After training: the data party answers about nodes, the label party predicts and serves."""
