"""The data party after training: it answers queries, one conversation after the other.

query -> ids that are no node, and representations of the others
         or a refusal, with what is left of the budget

The data party answers the label party: one conversation after the other, until it is stopped.
"""

from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from time import time

from vesper.deployment.config.party_config import PartyConfig
from vesper.deployment.connect import meeting_place
from vesper.deployment.saved_run import AnsweringRun, read_answering
from vesper.deployment.state_folder import held
from vesper.errors import (
    BudgetError,
    InputError,
    PeerError,
    PeerLostError,
    PeerStoppedError,
    RemoteProtocolError,
)
from vesper.graph.holdings import open_data
from vesper.mechanism.noise import NoiseSource
from vesper.method.registry import find_method
from vesper.party.inference import NOTHING, AnsweringParty
from vesper.privacy.ledger.ledger_file import open_to_read
from vesper.privacy.ledger.store import Ledger
from vesper.progress import Progress, silent
from vesper.protocol.inference_turns import ASKING
from vesper.protocol.messages import Answer, AnswererHello, AskerHello, Query, Refusal
from vesper.protocol.tensor import digest_of_ids
from vesper.protocol.turns import Role
from vesper.serving.served_graph import (
    Subject,
    edge_free_subject,
    refuse_other_columns,
    refuse_other_nodes,
    snapshot_subject,
    trained_subject,
)
from vesper.session.peer import PROTOCOL_VERSION, Link, refuse_other
from vesper.transport.channel import closing_in_words

MOST_IDS = 8192
"""In one query."""
LONGEST_ID = 1024
ANSWERED_PLANS = ("certified", "edge-free")


class Answerer:
    """A trained model and the graph it is asked about."""

    def __init__(self, run: AnsweringRun, subject: Subject) -> None:
        self._run, self.subject = run, subject
        self._method = find_method(run.config.run.method)
        self.stages = self._method.stages(run.config, run.sizes)
        self._parties: dict[int, AnsweringParty | BudgetError] = {}  # a stage

    @property
    def hello(self) -> AnswererHello:
        """The first word of every conversation."""
        return AnswererHello(
            version=PROTOCOL_VERSION,
            contract=self._run.contract,
            session=self._run.session,
            snapshot=self.subject.name,
        )

    def reply(self, query: Query, *, stage: int) -> Answer | Refusal:
        """Answer one query; a query without ids asks about the budget and costs nothing.

        Raises:
            RemoteProtocolError: the query is too large.
        """
        if len(query.ids) > MOST_IDS or any(len(text) > LONGEST_ID for text in query.ids):
            raise RemoteProtocolError(
                f"the peer asked about {len(query.ids)} ids, the limit is {MOST_IDS} of at most "
                f"{LONGEST_ID} characters"
            )
        unknown, values = query.ids, NOTHING
        if query.ids:
            party = self._party(stage)
            if isinstance(party, BudgetError):
                reason = str(party).partition("\n")[0]
                return Refusal(query.number, *self._budget(), reason=reason)
            unknown, values = party.embed(query.ids)
        return Answer(
            query.number,
            *self._budget(),
            ids_digest=digest_of_ids(query.ids),
            unknown=unknown,
            values=values,
        )

    def _party(self, stage: int) -> AnsweringParty | BudgetError:
        """Go through the stages on this graph: reads its releases, or makes them the first time."""
        if stage not in self._parties:
            try:
                door, agreed = self.subject.open_door()
                representation = agreed.method.data_side(
                    agreed.config,
                    agreed.sizes,
                    noise_plan=agreed.noise_plan,
                    features=self.subject.data.features,
                    door=door,
                )
                self._parties[stage] = AnsweringParty(
                    representation,
                    self.subject.data.ids,
                    trained=self._run.arrays,
                    roster=self._run.roster,
                    stage=stage,
                    is_new=self.subject.is_new,
                )
            except BudgetError as refusal:
                self._parties[stage] = refusal
        return self._parties[stage]

    def _budget(self) -> tuple[float, float, float, float]:
        """Epsilon, delta, spent and left; zeros where no edge is read."""
        budget, balance = self.subject.budget, self.subject.balance()
        if budget is None or balance is None:
            return 0.0, 0.0, 0.0, 0.0
        return (
            budget.epsilon,
            budget.delta,
            balance.spent_epsilon(budget.delta),
            balance.left_epsilon() or 0.0,
        )


@contextmanager
def open_answerer(
    config: PartyConfig,
    *,
    snapshot: Path | None = None,
    noise: NoiseSource | None = None,
    progress: Progress = silent,
) -> Iterator[Answerer]:
    """Open a finished run to answer about the graph of training, or about a snapshot.

    Raises:
        InputError: the run is not finished, its plan certifies nothing, or the graph does not fit.
    """
    own, run = config.party, read_answering(config)
    assert own.ledger is not None
    if run.plan not in ANSWERED_PLANS:
        raise InputError(
            f"{own.state}: expected a run of a certified plan, or of one that reads no edge, to "
            f"answer for; this one was of plan '{run.plan}', every answer of which would tell more "
            f"about edges than anybody has counted"
        )
    data = open_data(snapshot or own.folder, progress=progress)
    if snapshot is None:
        refuse_other_nodes(run, data)
    else:
        refuse_other_columns(run.columns, snapshot)
    if run.plan == "edge-free":
        subject = edge_free_subject(run, data, folder=snapshot, state=own.state)
        yield Answerer(run, subject)
    elif snapshot is None:
        with closing(open_to_read(own.ledger)) as reader:
            yield Answerer(run, trained_subject(run, data, state=own.state, ledger=reader))
    else:
        with closing(Ledger(own.ledger, clock=time)) as ledger:
            subject = snapshot_subject(
                run,
                data,
                folder=snapshot,
                state=own.state,
                ledger=ledger,
                noise=noise or NoiseSource.from_os(),
            )
            yield Answerer(run, subject)


Said = Callable[[str], None]
"""Is told what happens, line by line."""


def converse(answerer: Answerer, link: Link, *, said: Said = lambda line: None) -> None:
    """Answer one peer until it says farewell.

    Raises:
        PeerError: the peer is gone, has other settings, or sent something that it may not send.
    """
    link.send(answerer.hello)
    hello = link.expect(AskerHello)
    try:
        refuse_other(hello, answerer.hello.contract)
    except InputError as error:
        raise PeerError(str(error)) from None
    if hello.session != answerer.hello.session:
        raise PeerError("the peer asks about the model of another run than this one")
    if not 0 <= hello.stage < answerer.stages:
        raise RemoteProtocolError(f"the peer asks for stage {hello.stage} of {answerer.stages}")
    while isinstance(query := link.receive(), Query):
        reply = answerer.reply(query, stage=hello.stage)
        link.send(reply)
        if query.ids:
            said(_in_words(query, reply))


def answer_queries(
    config: PartyConfig,
    *,
    snapshot: Path | None = None,
    noise: NoiseSource | None = None,
    progress: Progress = silent,
    said: Said = lambda line: None,
) -> None:
    """Answer the label party's queries until the process is stopped.

    Args:
        config: the data party's file, of a finished run.
        snapshot: folder with `nodes` and `edges` that came after training; default: the graph of
            training.
        noise: where noise for a snapshot comes from; by default the operating system.
        progress: is told how far reading the tables is.
        said: is told who asked and what was answered.
    """
    peer = config.party.peer
    with (
        held(config.party.state),
        meeting_place(config) as connect,  # an idle peer is nothing to be told of
        open_answerer(config, snapshot=snapshot, noise=noise, progress=progress) as answerer,
    ):
        for line in answerer.subject.in_words():
            said(line)
        said(f"answering {peer}; stop with Ctrl-C")
        while True:
            try:
                with closing_in_words(connect(None)) as channel:
                    said(f"{peer} is here")
                    converse(answerer, Link(Role.DATA, channel, ASKING), said=said)
                    said(f"{peer} has left")
            except (PeerLostError, PeerStoppedError) as error:
                said(str(error))
            except PeerError as error:
                said(f"{peer} was sent away: {error}")


def _in_words(query: Query, reply: Answer | Refusal) -> str:
    spent = f"epsilon {reply.spent_epsilon:.3g} of {reply.epsilon:g}"
    if isinstance(reply, Refusal):
        return f"refused {len(query.ids)} nodes: {reply.reason} ({spent})"
    unknown = f", {len(reply.unknown)} unknown" if reply.unknown else ""
    return f"answered about {len(query.ids) - len(reply.unknown)} nodes{unknown} ({spent})"
