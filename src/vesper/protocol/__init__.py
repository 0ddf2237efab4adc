"""Protocol: the closed set of messages between the parties, their order and their bytes.

In reading order:

- `messages.py`: everything that may be sent.
- `turns.py`: which message may come next in training; `inference_turns.py`: the same afterwards.
- `codec.py`: messages to bytes and back.
- `fields.py`: what frames consist of, tensors above all, and digests of node lists.
- `rounding.py`: stochastic rounding of tensors to fewer bits.

Nothing in here opens a socket; `transport` moves the bytes.
"""
