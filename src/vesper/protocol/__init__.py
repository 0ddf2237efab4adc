"""Protocol: the closed set of messages between the parties, their order and their bytes.

In reading order:

- `messages.py`: everything that may be sent.
- `turns.py`: which message may come next in training; `inference_turns.py`: the same afterwards.
- `codec.py`: messages to bytes and back; `frame_reader.py` reads the bytes of a peer.
- `tensor.py`: tensors to bytes and back, and digests of node lists.
- `rounding.py`: stochastic rounding of tensors to fewer bits.

Nothing in here opens a socket; `transport` moves the bytes.
"""
