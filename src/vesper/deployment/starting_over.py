"""Starting over: when a failed session may be discarded, so that both sides begin a new one.

A session that is discarded although the data party was charged for it costs the graph its budget.
So it is kept, and resumed later, unless this side knows that nothing was charged:

| side | knows it when |
| --- | --- |
| data party | it has sent no more than its hello, and its ledger has no charge of the session |
| label party | it has sent no roster, without which nothing is released |
| label party | it has sent one, and the data party has closed with a reason that says it |

A resumed session is always kept. So is one whose connection failed: the peer may be anywhere.
"""

from contextlib import closing

from vesper.deployment.config.party_config import PartyConfig
from vesper.errors import BudgetError, InputError, PeerError, PeerLostError, PeerStoppedError
from vesper.transport.frame_log import RECEIVED, SENT, FrameLog


def may_start_over(config: PartyConfig, error: BaseException, *, resumed: bool) -> bool:
    """Whether the session that ended with `error` may be discarded, if its ledger has no charge."""
    is_settled = isinstance(error, InputError | BudgetError | PeerError)
    if resumed or not is_settled or isinstance(error, PeerLostError):
        return False
    with closing(FrameLog(config.party.state / "frames")) as log:
        has_sent_no_more_than_a_hello = log.count(SENT) <= 1
        if config.party.role == "data" or has_sent_no_more_than_a_hello:
            return has_sent_no_more_than_a_hello
        return log.count(RECEIVED) <= 1 and is_declared_uncharged(error)


def is_declared_uncharged(error: BaseException) -> bool:
    """Whether the peer has ended the session and said that nothing was charged."""
    return isinstance(error, PeerStoppedError) and error.nothing_was_charged
