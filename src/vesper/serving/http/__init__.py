"""Predictions over HTTP at the label party, for `vesper serve`.

Read in this order:

- `server.py`: sockets with limits on sizes, times and threads; also used by `vesper board`
- `service.py`: the response to each request
- `openapi.py`: the interface as OpenAPI, and the page that describes it
"""
