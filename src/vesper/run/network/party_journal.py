"""The journal of one party, for people who watch."""

from contextlib import AbstractContextManager

from vesper.progress import Progress
from vesper.run.journal import Journal, journal_of
from vesper.run.setup.party_config import PartyConfig


def party_journal(
    config: PartyConfig, *, resume: bool, source: str, progress: Progress
) -> AbstractContextManager[Journal]:
    """Write it into the state folder until the block ends."""
    own = config.party
    return journal_of(
        own.state,
        side=own.role,
        config=config.shared,
        ledger=own.ledger,
        resumed=resume,
        source=source,
        progress=progress,
    )
