"""`vesper report`: an HTML page about a run, for people not involved in it; a registry record."""

from pathlib import Path
from typing import Annotated

import typer

from vesper.cli.console import print_json, print_line


def report(
    run: Annotated[
        Path, typer.Argument(help="Run folder of 'vesper simulate', or state folder of a party.")
    ],
    out: Annotated[
        Path | None, typer.Option(help="HTML file to write; an existing one is replaced.")
    ] = None,
    ledger: Annotated[
        Path | None,
        typer.Option(
            help="The data party's ledger; default: the one that this side's run was charged to."
        ),
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
        typer.Option(help="JSON file to write, with the fields of OpenDP's deployments registry."),
    ] = None,
    name: Annotated[str | None, typer.Option(help="With --registry: name of the product.")] = None,
    curator: Annotated[str | None, typer.Option(help="With --registry: publisher.")] = None,
    intended_use: Annotated[str | None, typer.Option(help="With --registry: purpose.")] = None,
    region: Annotated[str | None, typer.Option(help="With --registry: region of the data.")] = None,
    author: Annotated[
        str | None, typer.Option(help="With --registry: author of the record.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the result as JSON.")] = False,
) -> None:
    """Write an HTML page about a run, with its guarantee.

    It has the metric, the privacy in plain words, charts and settings.
    """
    import json

    from vesper.errors import InputError
    from vesper.report.contents import contents_of_run
    from vesper.report.live_run import charged_ledger
    from vesper.report.page import write_page, write_report
    from vesper.report.registry_record import Publisher, registry_record
    from vesper.report.run_folder import read_run

    if out is None and registry is None:
        raise InputError("--out, --registry: expected at least one of them; try --out page.html")
    if evidence_files and out is None:
        raise InputError("--with: expected only with --out; add --out page.html")
    people = {
        "name": name,
        "curator": curator,
        "intended_use": intended_use,
        "region": region,
        "author": author,
    }
    publisher_options = [
        f"--{option.replace('_', '-')}" for option, value in people.items() if value
    ]
    if publisher_options and registry is None:
        raise InputError(
            f"{', '.join(publisher_options)}: expected only with --registry; add it or remove them"
        )
    ledger = ledger or charged_ledger(run)
    run_contents = read_run(run, ledger=ledger)
    written = {}
    if out is not None:
        contents = contents_of_run(run, ledger=ledger, evidence=evidence_files or ())
        written["report"] = str(write_report(contents, out))
    if registry is not None:
        record = registry_record(run_contents.privacy, run_contents.config, Publisher(**people))
        write_page(json.dumps(record, indent=2) + "\n", registry)
        written["registry"] = str(registry)
    if as_json:
        privacy = run_contents.privacy
        facts = {"is_private": privacy.is_private, "simulated": privacy.simulated}
        print_json({**written, **facts})
        return
    print_line(f"{', '.join(written.values())}: {run_contents.privacy.verdict}")
