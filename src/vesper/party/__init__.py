"""What each party computes in one step: `DataParty` holds the graph, `LabelParty` the labels.

In reading order:

- `representation`: the interface between `DataParty` and a method, which embeds nodes.
- `data_party`: embeds the nodes of a batch, and learns from the gradients that come back.
- `label_party`: decodes embeddings, computes loss and gradients, and evaluates validation scores.
- `stage_selection`: which finished stage becomes the model.
- `state`: what either party stores in a checkpoint.
- `inference`: the data party after training.
"""
