"""Public data on disk as party folders.

- `convert`: recognises a layout and converts it; start here
- `neutral_folder`, `ogb_products`, `reddit_npz`: one layout each, with `find` and `write`
- `row_readers`: tables and arrays in blocks of rows, and errors that count bad rows
"""
