"""`vesper predict`: predictions of nodes with the trained model."""

from pathlib import Path
from typing import Annotated

import typer

from vesper.cli.console import print_json, print_line, progress_display


def predict(
    config: Annotated[Path, typer.Option(help="The label party's TOML file.")],
    ids: Annotated[
        Path, typer.Option(help="A .parquet or .csv with a column id; or text, one id per line.")
    ],
    out: Annotated[Path, typer.Option(help="New file, .parquet or .csv.")],
    measure: Annotated[
        bool,
        typer.Option(
            "--measure",
            help="Also compute the metric from a column label in --ids (its test rows, if split).",
        ),
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Predict nodes with the trained model.

    The data party must be answering: vesper party data --answer.
    """
    from vesper.cli.party_command import load_label_settings
    from vesper.errors import PeerLostError
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
    query_ids = read_query_ids(ids)
    truth = read_truth(ids) if measure else {}
    limit = None if settings.party.when_lost == "wait" else settings.party.patience
    with (
        progress_display() as progress,
        open_predictor(table, progress=progress) as predictor,
    ):
        texts = [str(value) for value in query_ids.values.to_pylist()]
        predictions = predictor.predict(texts, limit=limit, progress=progress)
        test = predictor.evaluate(predictions, truth, path=ids) if truth else None
    if len(predictions.values) + len(predictions.unknown) < len(query_ids):
        raise PeerLostError(
            f"{predictions.unreachable}; nothing was written, embeddings received so far are cached"
        )
    write_predictions(out, query_ids, predictor.columns, predictions)
    facts = {
        "ids": len(query_ids),
        "unknown": len(predictions.unknown),
        "cached": len(predictions.cached),
        "snapshot": predictions.snapshot,
        "columns": predictor.columns,
        "budget": predictions.budget,
        **({} if test is None else {predictor.metric: test}),
        "data_party_unreachable": predictions.unreachable is not None,
    }
    if as_json:
        print_json({"file": str(out), **facts})
        return
    print_line(f"{out}: {len(query_ids)} ids, {len(predictions.cached)} from the cache")
    if test is not None:
        num_labelled = len(truth.keys() & predictions.values)
        print_line(f"{predictor.metric} {test:.2f} on {num_labelled} labelled nodes")
    if predictions.unknown:
        print_line(
            f"{len(predictions.unknown)} ids are not nodes of {peers}: their rows have no values"
        )
    if predictions.unreachable is not None:
        print_line(
            f"{peers} is unreachable; predicted from the cache of graph {predictions.snapshot}"
        )
