"""Predictions over HTTP at the label party, for `vesper serve`.

Read in this order:

- `server.py`: sockets with limits on sizes, times and connections; also used by `vesper board`
- `connections.py`: total times, and which connection gives way when there are too many
- `request_ids.py`: the ids of a request
- `service.py`: the response to each request
- `openapi.py`: the interface as OpenAPI
- `service_page.py`: the page with a form to try it
"""
