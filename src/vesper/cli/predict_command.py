"""`vesper predict`: what the trained model says about nodes."""

from pathlib import Path
from typing import Annotated

import typer

from vesper.cli.console import print_json, print_line, progress_display


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
    from vesper.cli.party_command import load_label_settings
    from vesper.errors import BudgetError, PeerLostError
    from vesper.serving.multi_party_predictor import open_predictor
    from vesper.serving.prediction_tables import (
        read_query_ids,
        read_truth,
        refuse_output,
        write_predictions,
    )

    table = load_label_settings(config)
    settings, peers = table.own, " and ".join(pair.party.peer for pair in table.peer_configs)
    refuse_output(out)
    wanted = read_query_ids(ids)
    truth = read_truth(ids) if measure else {}
    limit = None if settings.party.when_lost == "wait" else settings.party.patience
    with (
        progress_display() as progress,
        open_predictor(table, progress=progress) as predictor,
    ):
        texts = [str(value) for value in wanted.values.to_pylist()]
        found = predictor.predict(texts, limit=limit, progress=progress)
        test = predictor.evaluate(found, truth, path=ids) if truth else None
    left = "" if found.budget is None else f"; epsilon {found.budget['left_epsilon']:.3g} is left"
    if found.refusal is not None:
        raise BudgetError(f"{found.refusal} ({peers} says{left}); nothing is written")
    if len(found.values) + len(found.unknown) < len(wanted):
        raise PeerLostError(f"{found.unreachable}; nothing is written, what has come is kept")
    write_predictions(out, wanted, predictor.columns, found)
    facts = {
        "ids": len(wanted),
        "unknown": len(found.unknown),
        "cached": len(found.cached),
        "snapshot": found.snapshot,
        "columns": predictor.columns,
        "budget": found.budget,
        **({} if test is None else {predictor.metric: test}),
        "data_party_unreachable": found.unreachable is not None,
    }
    if as_json:
        print_json({"file": str(out), **facts})
        return
    print_line(f"{out}: {len(wanted)} ids, {len(found.cached)} from the cache")
    if test is not None:
        print_line(
            f"{predictor.metric} {test:.2f} on {len(truth.keys() & found.values)} labelled nodes"
        )
    if found.unknown:
        print_line(f"{len(found.unknown)} ids are no nodes of {peers}: rows without values")
    if found.unreachable is not None:
        print_line(f"{peers} is away; answered from the cache of graph {found.snapshot}")
