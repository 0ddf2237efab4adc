"""`vesper align`: proof that both parties hold the same labelled ids."""

from pathlib import Path
from typing import Annotated

import typer

from vesper.cli.console import print_json, print_line, progress_display


def align(
    config: Annotated[Path, typer.Option(help="This party's TOML file.")],
    private: Annotated[
        bool,
        typer.Option(
            "--private",
            help="Use private set intersection: neither learns ids that only the other has.",
        ),
    ] = False,
    peer: Annotated[
        str | None,
        typer.Option("--with", help="Data party to align with, if the file lists several."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Prove that both parties hold the same labelled ids.

    Both parties must run it at the same time.
    """
    from vesper.deployment.alignment.align import align_data, align_labels
    from vesper.deployment.alignment.aligned_file import write_aligned
    from vesper.deployment.alignment.private_intersection import refuse_without_library
    from vesper.deployment.config.multi_party_config import load_peer_config
    from vesper.deployment.connect import peer_connection
    from vesper.graph.holdings import open_data
    from vesper.graph.labels import open_labels

    settings = load_peer_config(config, peer)
    party = settings.party
    if private:
        refuse_without_library()
    with progress_display() as progress:
        if party.role == "data":
            ids, path = open_data(party.folder, progress=progress).ids, party.folder
        else:
            decimals = settings.shared.run.task != "classification"
            labels = open_labels(party.folder, decimals=decimals)
            ids, path = labels.ids, labels.path

        def waiting(seconds: float) -> None:
            progress(f"waiting for {party.peer}, seconds", int(seconds), 0)

        with peer_connection(settings, waiting=waiting) as channel:
            if party.role == "data":
                alignment = align_data(channel, ids, private=private, progress=progress)
            else:
                alignment = align_labels(
                    channel, ids, path=path, private=private, progress=progress
                )
    file = write_aligned(party.state, alignment)
    facts = {"common": len(alignment.ids), "ids": len(ids), "private": alignment.private}
    if as_json:
        print_json({"file": str(file), **facts, "proof": alignment.proof})
        return
    print_line(f"{file}: {len(alignment.ids)} labelled ids in common, in the same order")
    print_line(f"proof {alignment.proof}, equal at {party.peer}")
