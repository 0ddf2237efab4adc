"""The data party after training: it answers queries, one conversation after the other.

query -> ids that are no node, and representations of the others
         or a refusal, with what is left of the budget
"""

from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from time import time

from vesper.errors import BudgetError, InputError, RemoteProtocolError
from vesper.graph.holdings import open_data
from vesper.mechanism.noise import NoiseSource
from vesper.method.registry import find_method
from vesper.party.answering_party import NOTHING, AnsweringParty
from vesper.privacy.ledger import Ledger
from vesper.privacy.ledger_file import open_to_read
from vesper.progress import Progress, silent
from vesper.protocol.digest import digest_of_ids
from vesper.protocol.messages import Answer, AnswererHello, Query, Refusal
from vesper.run.ends.opening import PROTOCOL_VERSION
from vesper.run.serving.kept_run import AnsweringRun, read_answering
from vesper.run.serving.subject import (
    Subject,
    edge_free_subject,
    refuse_other_columns,
    refuse_other_nodes,
    snapshot_subject,
    trained_subject,
)
from vesper.run.setup.party_config import PartyConfig

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
                door, config = self.subject.open_door()
                representation = self._method.data_side(
                    config, self.subject.sizes, features=self.subject.data.features, door=door
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
