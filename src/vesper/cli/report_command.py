"""`vesper report`: one HTML page about a run, for people who were not there; a registry record."""

from pathlib import Path
from typing import Annotated

import typer

from vesper.cli.console import print_json, print_line


def report(
    run: Annotated[
        Path, typer.Argument(help="Run folder of 'vesper simulate', or state of a party.")
    ],
    out: Annotated[
        Path | None, typer.Option(help="HTML file to write; an old one is replaced.")
    ] = None,
    ledger: Annotated[
        Path | None, typer.Option(help="The data party's ledger, where it is at hand.")
    ] = None,
    evidence_files: Annotated[
        list[Path] | None,
        typer.Option(
            "--with",
            help="JSON of 'vesper attack', 'audit' or 'degrees' to show on the page; repeatable.",
        ),
    ] = None,
    registry: Annotated[
        Path | None,
        typer.Option(help="JSON file to write, in the fields of OpenDP's deployments registry."),
    ] = None,
    name: Annotated[str | None, typer.Option(help="With --registry: of the product.")] = None,
    curator: Annotated[str | None, typer.Option(help="With --registry: who publishes it.")] = None,
    intended_use: Annotated[str | None, typer.Option(help="With --registry: what for.")] = None,
    region: Annotated[str | None, typer.Option(help="With --registry: of the data.")] = None,
    author: Annotated[str | None, typer.Option(help="With --registry: of the record.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the result as JSON.")] = False,
) -> None:
    """Write a page about a run: metric, privacy in plain words, charts, settings."""
    import json

    from vesper.errors import InputError
    from vesper.report.contents import contents_of_run
    from vesper.report.page import write_page, write_report
    from vesper.report.registry_record import Publisher, registry_record
    from vesper.report.run_folder import read_run

    if out is None and registry is None:
        raise InputError("--out, --registry: expected at least one of them; --out page.html, say")
    if evidence_files and out is None:
        raise InputError("--with: only for --out")
    people = {
        "name": name,
        "curator": curator,
        "intended_use": intended_use,
        "region": region,
        "author": author,
    }
    given = [f"--{option.replace('_', '-')}" for option, value in people.items() if value]
    if given and registry is None:
        raise InputError(f"{', '.join(given)}: only for --registry")
    whole = read_run(run, ledger=ledger)
    written = {}
    if out is not None:
        contents = contents_of_run(run, ledger=ledger, evidence=evidence_files or ())
        written["report"] = str(write_report(contents, out))
    if registry is not None:
        record = registry_record(whole.privacy, whole.config, Publisher(**people))
        write_page(json.dumps(record, indent=2) + "\n", registry)
        written["registry"] = str(registry)
    if as_json:
        print_json({**written, "is_private": whole.privacy.is_private})
        return
    print_line(f"{', '.join(written.values())}: {whole.privacy.verdict}")
