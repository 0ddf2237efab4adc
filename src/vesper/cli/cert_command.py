"""`vesper cert`: a private authority, requests and approvals; private keys never travel."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer

from vesper.cli.console import print_json, print_line

app = typer.Typer(help="Create and sign the certificates of the two parties.", no_args_is_help=True)

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]


@app.command()
def init(
    out: Annotated[Path, typer.Option(help="Folder for authority.pem and authority.key.")],
    name: Annotated[str, typer.Option(help="Name of the authority.")] = "vesper authority",
    as_json: AsJson = False,
) -> None:
    """Create a private certificate authority.

    authority.pem goes to both parties; the key stays here.
    """
    from vesper.deployment.identity.authority import CERTIFICATE, KEY, make_authority

    authority = make_authority(out, name=name, now=_now())
    until = authority.certificate.not_valid_after_utc
    if as_json:
        files = {"certificate": str(out / CERTIFICATE), "key": str(out / KEY)}
        print_json({**files, "valid_until": until.isoformat()})
        return
    print_line(f"{out / CERTIFICATE}: valid until {until:%Y-%m-%d}; give it to both parties")
    print_line(f"{out / KEY}: signs for both parties; it never leaves this machine")


@app.command()
def request(
    name: Annotated[str, typer.Option(help="This party's name, one word, as in its settings.")],
    out: Annotated[Path, typer.Option(help="Folder for NAME.key and NAME.csr.")],
    host: Annotated[
        list[str] | None,
        typer.Option(help="Host name or IP address to certify as well; repeatable."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Create a private key, and a request for the authority to sign.

    The key stays here.
    """
    from vesper.deployment.identity.request import make_request

    key, file, made = make_request(name, host or [], out)
    if as_json:
        files = {"key": str(key), "request": str(file)}
        print_json({**files, "name": name, "fingerprint": made.fingerprint})
        return
    print_line(f"{file}: send it to the operator of the authority")
    print_line(f"{key}: never leaves this machine")
    print_line(f"fingerprint {made.fingerprint} (send it over another channel, for comparison)")


@app.command()
def approve(
    authority: Annotated[Path, typer.Option(help="Folder that `vesper cert init` made.")],
    request: Annotated[Path, typer.Option(help="The party's .csr file.")],
    out: Annotated[Path, typer.Option(help="New file for the certificate.")],
    days: Annotated[int, typer.Option(help="Days that it is valid.")] = 365,
    fingerprint: Annotated[
        str | None, typer.Option(help="Fingerprint as the party reported it; others are refused.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Sign a request, for the name that it contains."""
    from cryptography.hazmat.primitives.serialization import Encoding

    from vesper.deployment.identity.authority import read_authority, sign
    from vesper.deployment.identity.request import read_request, write_new_file
    from vesper.errors import InputError

    signing_request = read_request(request)
    if (
        fingerprint is not None
        and fingerprint.replace(":", "").lower() != signing_request.fingerprint
    ):
        raise InputError(
            f"{request}: expected fingerprint {fingerprint}, found {signing_request.fingerprint}; "
            f"this is not the request that the party made"
        )
    signed = sign(read_authority(authority, now=_now()), signing_request, days=days, now=_now())
    write_new_file(out, signed.public_bytes(Encoding.PEM))
    until = signed.not_valid_after_utc
    if as_json:
        facts = {
            "certificate": str(out),
            "name": signing_request.name,
            "hosts": list(signing_request.hosts),
        }
        print_json(
            {**facts, "fingerprint": signing_request.fingerprint, "valid_until": until.isoformat()}
        )
        return
    also = f" and hosts {', '.join(signing_request.hosts)}" if signing_request.hosts else ""
    print_line(
        f"{out}: for '{signing_request.name}'{also}, valid until {until:%Y-%m-%d}; send it back"
    )
    print_line(f"fingerprint {signing_request.fingerprint}")
    if fingerprint is None:
        print_line(
            "before you send the certificate, compare this with the fingerprint that the party "
            "reports over another channel"
        )


def _now() -> datetime:
    return datetime.now(UTC)
