"""`vesper predict`: what the trained model says about nodes."""

from pathlib import Path
from typing import Annotated

import typer

from vesper.cli.console import print_json, say, shown_progress


def predict(
    config: Annotated[Path, typer.Option(help="The label party's TOML file.")],
    ids: Annotated[
        Path, typer.Option(help="A .parquet or .csv with a column id; or text, one id a line.")
    ],
    out: Annotated[Path, typer.Option(help="New file, .parquet or .csv.")],
    measure: Annotated[
        bool,
        typer.Option(
            "--measure",
            help="Say how good it is: --ids has a column label (of test rows, if it has splits).",
        ),
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Predict nodes with the trained model; the data party answers (`party data --answer`)."""
    from vesper.cli.party_command import table_of
    from vesper.errors import BudgetError, PeerLostError
    from vesper.serving.multi_party_predictor import open_predictors
    from vesper.serving.prediction_tables import (
        read_truth,
        read_wanted,
        refuse_output,
        write_predictions,
    )

    table = table_of(config)
    settings, peers = table.own, " and ".join(pair.party.peer for pair in table.pairs)
    refuse_output(out)
    wanted = read_wanted(ids)
    truth = read_truth(ids) if measure else {}
    limit = None if settings.party.when_lost == "wait" else settings.party.patience
    with (
        shown_progress() as progress,
        open_predictors(table, progress=progress) as predictor,
    ):
        texts = [str(value) for value in wanted.values.to_pylist()]
        found = predictor.predict(texts, limit=limit, progress=progress)
        test = predictor.judge(found, truth, path=ids) if truth else None
    left = "" if found.budget is None else f"; epsilon {found.budget['left_epsilon']:.3g} is left"
    if found.refusal is not None:
        raise BudgetError(f"{found.refusal} ({peers} says{left}); nothing is written")
    if len(found.values) + len(found.unknown) < len(wanted):
        raise PeerLostError(f"{found.away}; nothing is written, what has come is kept")
    write_predictions(out, wanted, predictor.columns, found)
    facts = {
        "ids": len(wanted),
        "unknown": len(found.unknown),
        "cached": len(found.cached),
        "snapshot": found.snapshot,
        "columns": predictor.columns,
        "budget": found.budget,
        **({} if test is None else {predictor.metric: test}),
        "data_party_is_away": found.away is not None,
    }
    if as_json:
        print_json({"file": str(out), **facts})
        return
    say(f"{out}: {len(wanted)} ids, {len(found.cached)} from the cache")
    if test is not None:
        say(f"{predictor.metric} {test:.2f} on {len(truth.keys() & found.values)} labelled nodes")
    if found.unknown:
        say(f"{len(found.unknown)} ids are no nodes of {peers}: rows without values")
    if found.away is not None:
        say(f"{peers} is away; answered from the cache of graph {found.snapshot}")
