"""Server of the data party after training: answers the label party until it is stopped.

    query -> ids that are no node, embeddings of the others, and what the run has spent

The budget is reserved before anybody can connect, so no query is ever refused for lack of it.
Connections are served one after another.
"""

from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path

from vesper.deployment.config.party_config import PartyConfig
from vesper.deployment.connect import peer_connector
from vesper.deployment.party_ledger import open_party_ledger
from vesper.deployment.saved_run import SavedDataRun, read_saved_data_run
from vesper.deployment.state_folder import state_folder_lock
from vesper.errors import (
    InputError,
    PeerError,
    PeerLostError,
    PeerStoppedError,
    RemoteProtocolError,
)
from vesper.graph.holdings import open_data
from vesper.mechanism.noise import NoiseSource
from vesper.method.registry import find_method
from vesper.party.inference import NO_EMBEDDINGS, InferenceParty
from vesper.privacy.ledger.graph_name import expect_graph_name
from vesper.privacy.ledger.ledger_file import open_to_read
from vesper.privacy.ledger.overlap_report import describe_overlaps, warn_owner
from vesper.privacy.ledger.reservation import return_unused
from vesper.progress import Progress, no_progress
from vesper.protocol.codec import Limits, ids_frame_bytes
from vesper.protocol.fields import digest_of_ids
from vesper.protocol.inference_turns import QUERY_TABLE
from vesper.protocol.messages import (
    EmbeddingClientHello,
    EmbeddingQuery,
    EmbeddingServerHello,
    QueryAnswer,
)
from vesper.protocol.turns import Role
from vesper.serving.served_graph import (
    ServedGraph,
    refuse_other_columns,
    refuse_other_nodes,
    served_edge_free_graph,
    served_snapshot,
    served_training_graph,
)
from vesper.session.peer import PROTOCOL_VERSION, Link, refuse_other_contract
from vesper.transport.channel import closing_with_reason

MAX_IDS = 8192
"""Most ids in one query."""
MAX_ID_LENGTH = 1024
QUERY_LIMITS = Limits(ids=MAX_IDS, frame=ids_frame_bytes(MAX_IDS, longest=4 * MAX_ID_LENGTH))
"""Limits of a query; a character has at most four bytes."""
SERVED_PLANS = ("certified", "edge-free")


Log = Callable[[str], None]
"""Receives lines that report what happens."""


class EmbeddingServer:
    """A trained model and the graph that it serves."""

    def __init__(self, run: SavedDataRun, served_graph: ServedGraph) -> None:
        self._run, self.served_graph = run, served_graph
        self._method = find_method(run.config.run.method)
        self.stages = self._method.stages(run.config, run.sizes)
        self._parties: dict[int, InferenceParty] = {}  # by stage

    @property
    def hello(self) -> EmbeddingServerHello:
        """First message of every connection."""
        return EmbeddingServerHello(
            version=PROTOCOL_VERSION,
            contract=self._run.contract,
            session=self._run.session,
            snapshot=self.served_graph.name,
        )

    def reply(self, query: EmbeddingQuery, *, stage: int) -> QueryAnswer:
        """Answer one query; a query without ids is about the budget and costs nothing.

        Raises:
            RemoteProtocolError: the query is too large.
        """
        if len(query.ids) > MAX_IDS or any(len(text) > MAX_ID_LENGTH for text in query.ids):
            raise RemoteProtocolError(
                f"the peer queried {len(query.ids)} ids, the limit is {MAX_IDS} of at most "
                f"{MAX_ID_LENGTH} characters"
            )
        unknown, values = query.ids, NO_EMBEDDINGS
        if query.ids:
            unknown, values = self._party(stage).embed(query.ids)
        return QueryAnswer(
            query.number,
            *self._budget(),
            ids_digest=digest_of_ids(query.ids),
            unknown=unknown,
            values=values,
        )

    def _party(self, stage: int) -> InferenceParty:
        """Run the stages on this graph: reads its releases, or makes them the first time."""
        if stage not in self._parties:
            door, run_spec = self.served_graph.open_door()
            representation = run_spec.method.make_representation(
                run_spec.config,
                run_spec.sizes,
                noise_plan=run_spec.noise_plan,
                features=self.served_graph.data.features,
                door=door,
            )
            self._parties[stage] = InferenceParty(
                representation,
                self.served_graph.data.ids,
                trained=self._run.arrays,
                roster=self._run.roster,
                stage=stage,
                is_new=self.served_graph.is_new,
            )
        return self._parties[stage]

    def _budget(self) -> tuple[float, float, float, float]:
        """Epsilon, delta, and what the run has spent and left; zeros where no edge is read."""
        budget, balance = self.served_graph.budget, self.served_graph.balance()
        if budget is None or balance is None:
            return 0.0, 0.0, 0.0, 0.0
        return budget.epsilon, budget.delta, balance.spent_epsilon, balance.left_epsilon


@contextmanager
def open_embedding_server(
    config: PartyConfig,
    *,
    snapshot: Path | None = None,
    graph: str | None = None,
    noise: NoiseSource | None = None,
    progress: Progress = no_progress,
    log: Log = lambda line: None,
) -> Iterator[EmbeddingServer]:
    """Open a finished run to serve the graph of training, or a snapshot.

    Raises:
        InputError: the run is not finished, its plan certifies nothing, or the graph does not fit.
        BudgetError: what is released of the snapshot does not fit the budget of its graph.
    """
    own, run = config.party, read_saved_data_run(config)
    if run.plan not in SERVED_PLANS:
        raise InputError(
            f"{own.state}: expected a run whose plan is certified or reads no edge, got plan "
            f"'{run.plan}'; every answer would reveal more about edges than is accounted for. "
            f"Train with a certified plan to serve predictions"
        )
    data = open_data(snapshot or own.folder, progress=progress)
    if snapshot is None:
        refuse_other_nodes(run, data)
    else:
        refuse_other_columns(run.columns, snapshot)
    if run.plan == "edge-free":
        served_graph = served_edge_free_graph(run, data, folder=snapshot, state=own.state)
        yield EmbeddingServer(run, served_graph)
    elif snapshot is None:
        with closing(open_to_read(own.ledger)) as reader:
            yield EmbeddingServer(
                run, served_training_graph(run, data, state=own.state, ledger=reader)
            )
    else:
        graph = expect_graph_name(graph)
        with closing(open_party_ledger(config)) as ledger:
            served_graph = served_snapshot(
                run,
                data,
                graph=graph,
                folder=snapshot,
                state=own.state,
                ledger=ledger,
                noise=noise or NoiseSource.from_os(),
            )
            try:
                warn_owner(log, partial(describe_overlaps, ledger, graph))
                yield EmbeddingServer(run, served_graph)
            finally:  # whoever serves it again reserves again what is not charged yet
                return_unused(ledger, run=f"snapshot {served_graph.name}")


def serve_peer(server: EmbeddingServer, link: Link, *, log: Log = lambda line: None) -> None:
    """Answer one peer until it sends a farewell.

    Raises:
        PeerError: the peer is gone, has other settings, or sent something that it must not send.
    """
    link.send(server.hello)
    hello = link.expect(EmbeddingClientHello)
    try:
        refuse_other_contract(hello, server.hello.contract)
    except InputError as error:
        raise PeerError(str(error)) from None
    if hello.session != server.hello.session:
        raise PeerError("the peer queries the model of another run than this one")
    if not 0 <= hello.stage < server.stages:
        raise RemoteProtocolError(f"the peer requests stage {hello.stage} of {server.stages}")
    while isinstance(query := link.receive(QUERY_LIMITS), EmbeddingQuery):
        reply = server.reply(query, stage=hello.stage)
        link.send(reply)
        if query.ids:
            log(_describe_reply(query, reply))


def serve_embeddings(
    config: PartyConfig,
    *,
    snapshot: Path | None = None,
    graph: str | None = None,
    noise: NoiseSource | None = None,
    progress: Progress = no_progress,
    log: Log = lambda line: None,
) -> None:
    """Answer the label party's queries until the process is stopped.

    Args:
        config: the data party's file, of a finished run.
        snapshot: folder with `nodes` and `edges` of a snapshot; default: the graph of training.
        graph: the name of the graph that the snapshot is a version of.
        noise: source of the noise for a snapshot; by default the operating system.
        progress: receives progress reports.
        log: receives lines about who connected and what was answered.

    Raises:
        InputError: as `open_embedding_server` does.
    """
    peer = config.party.peer
    with (
        state_folder_lock(config.party.state),
        open_embedding_server(
            config, snapshot=snapshot, graph=graph, noise=noise, progress=progress, log=log
        ) as server,
        peer_connector(config, warn=log) as connect,  # waiting for a peer is not worth a message
    ):
        for line in server.served_graph.describe():
            log(line)
        log(f"answering {peer}; stop with Ctrl-C")
        while True:
            try:
                with closing_with_reason(connect(None)) as channel:
                    log(f"{peer} has connected")
                    serve_peer(server, Link(Role.DATA, channel, QUERY_TABLE), log=log)
                    log(f"{peer} has left")
            except (PeerLostError, PeerStoppedError) as error:
                log(str(error))
            except PeerError as error:
                log(f"{peer} was disconnected: {error}")


def _describe_reply(query: EmbeddingQuery, reply: QueryAnswer) -> str:
    spent = f"epsilon {reply.spent_epsilon:.3g} of {reply.epsilon:g}"
    unknown = f", {len(reply.unknown)} unknown" if reply.unknown else ""
    num_nodes = len(query.ids) - len(reply.unknown)
    return f"returned embeddings of {num_nodes} nodes{unknown} ({spent})"
