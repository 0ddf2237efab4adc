"""Notes below the tables of a study: what numbers mean, and what in them is not the paper's."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from vesper.study.findings import Findings

OURS: Mapping[str, tuple[str, str]] = {
    "decoder_inputs": ("raw", "decoders read standardised embeddings (decoder_inputs)"),
    "features": ("raw", "encoders read standardised and ranked features (features)"),
    "keep_epoch": ("last", "the best epoch by validation is kept (keep_epoch)"),
}
"""Settings whose default is ours: the paper's value, and what ours does."""


def notes_of(findings: Findings) -> Iterator[str]:
    """Yield notes for the reader of a table."""
    study = findings.study
    if not findings.has_histograms:
        yield (
            f"Test metric in percent: mean ± standard deviation over {study.seeds} seeds (with the "
            f"number of seeds, where there are fewer)."
        )
    if findings.published or findings.has_histograms:
        yield (
            "'published' numbers are from the paper, on the real data sets at full size; ours are "
            "on the data in brackets."
        )
    if findings.configurations:
        yield (
            "'best of' rows: at each epsilon the configuration with the highest mean test metric, "
            "as the paper's main table has the better decoder; this choice is optimistic."
        )
    ours = [block for block in study.grid.grid if block.as_paper]
    if ours:
        given = [block.model_extra or {} for block in ours]
        ways = [way for key, (value, way) in OURS.items() if _is_ours(given, key, value)]
        if ways:
            yield f"Ours rather than the paper's, in methods of the paper: {'; '.join(ways)}."
    if any(block.method_names & {"mlp"} and not block.as_paper for block in study.grid.grid):
        yield (
            "The MLP has our settings (averaged networks, longer training); the paper's are "
            "as_paper = true, members = 1."
        )
    for note in sorted({score.note for score in findings.published.values() if score.note}):
        yield f"Published: {note}."
    yield (
        "'claimed' epsilon follows the paper's analysis and does not hold; 'certified' epsilon "
        "holds against a label party that knows every batch."
    )
    for line in findings.without_result():
        why = line.failed or f"stopped after {line.limit:g} s"
        yield f"Missing: {line.cell}: {why}."


def _is_ours(given: Sequence[Mapping[str, Any]], key: str, papers: str) -> bool:
    """Whether some block leaves a setting at its default, which is ours."""
    return any(block.get(key) != papers for block in given)
