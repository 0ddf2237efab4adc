"""What a run with several data parties leaves behind for each pair, so that each can be asked.

    result/with/<name>/  contract.json   result/ config, result, label_party.npz, asking.json

The joined decoder is a sum over parties, so the part of one party is a decoder of its own. A party
that has left cannot be asked; nothing of it is kept.
"""

from dataclasses import replace
from pathlib import Path

from vesper.model.calibration import Calibration
from vesper.model.joined_decoder import JoinedDecoder
from vesper.run.ends.label_end import LabelOutcome
from vesper.run.result import LabelResult, write_run
from vesper.run.serving.kept_run import keep_for_questions
from vesper.run.setup.contract import approve
from vesper.run.setup.label_table import LabelTable
from vesper.run.setup.party_config import PartyConfig


def keep_pairs(
    out: Path,
    table: LabelTable,
    outcome: LabelOutcome,
    result: LabelResult,
    calibration: Calibration,
) -> None:
    """Write the part of each party that is still there."""
    decoder = outcome.label_side
    modules = list(decoder.members) if isinstance(decoder, JoinedDecoder) else [decoder.module]
    for number, (pair, facts) in enumerate(zip(table.pairs, result.parties, strict=True)):
        if facts.left:
            continue
        assert facts.session is not None
        folder = out / "with" / facts.name
        (folder / "result").mkdir(parents=True)
        approve(folder, pair.shared)
        own = replace(result, session=facts.session, privacy=facts.privacy, parties=())
        write_run(folder / "result", pair.shared, own, label_party=modules[number])
        sizes = outcome.agreements[number].sizes
        keep_for_questions(folder / "result", sizes, calibration)


def there_still(table: LabelTable) -> list[PartyConfig]:
    """Data parties of a finished run elsewhere that have not left it."""
    if not table.parties:
        return list(table.pairs)
    own = [party.name for party in table.parties if party.own]
    return [pair for pair, _ in kept_pairs(table) if pair.party.peer not in own]


def kept_pairs(table: LabelTable) -> list[tuple[PartyConfig, PartyConfig]]:
    """Settings of each pair that can be asked: to meet by, and to read what was kept by."""
    kept = table.own.party.state / "result" / "with"
    found = []
    for pair in table.pairs:
        folder = kept / pair.party.peer
        if folder.is_dir():
            there = pair.party.model_copy(update={"state": folder})
            found.append((pair, pair.model_copy(update={"party": there})))
    return found
