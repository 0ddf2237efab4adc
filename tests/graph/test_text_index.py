import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from vesper.graph.text_index import TextIndex

TEXTS = st.lists(st.text(max_size=6), max_size=40)


@given(TEXTS, TEXTS)
def test_lookups_equal_a_dictionary(known: list[str], wanted: list[str]) -> None:
    distinct = list(dict.fromkeys(known))
    index = TextIndex(pa.array(distinct, type=pa.large_string()))
    positions = index.positions(pa.array(wanted + distinct, type=pa.string()))
    table = {text: k for k, text in enumerate(distinct)}
    assert positions.tolist() == [table.get(text, -1) for text in wanted + distinct]


def test_slices_of_arrays() -> None:
    known = pa.array(["x", "a", "b", "c", "y"], type=pa.large_string())[1:4]
    wanted = pa.array(["c", "c", "a", "x", "b"], type=pa.large_string())[1:]
    assert TextIndex(known).positions(wanted).tolist() == [2, 0, -1, 1]
