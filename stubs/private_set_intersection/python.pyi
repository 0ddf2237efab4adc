from collections.abc import Iterable
from enum import Enum

class _Message:
    def SerializeToString(self) -> bytes: ...
    def ParseFromString(self, serialized: bytes) -> int: ...

class _Elements(list[bytes]):
    def extend(self, elements: Iterable[bytes]) -> None: ...

class _Raw:
    encrypted_elements: _Elements

class Request(_Message):
    encrypted_elements: _Elements
    def __init__(
        self, *, reveal_intersection: bool = ..., encrypted_elements: Iterable[bytes] = ...
    ) -> None: ...

class Response(_Message):
    encrypted_elements: _Elements

class ServerSetup(_Message):
    raw: _Raw

class DataStructure(Enum):
    RAW = 0

class client:
    @classmethod
    def CreateWithNewKey(cls, reveal_intersection: bool) -> client: ...
    def CreateRequest(self, data: list[str]) -> Request: ...
    def GetIntersection(
        self, server_setup: ServerSetup, server_response: Response
    ) -> list[int]: ...

class server:
    @classmethod
    def CreateWithNewKey(cls, reveal_intersection: bool) -> server: ...
    def CreateSetupMessage(
        self, fpr: float, num_client_inputs: int, inputs: list[str], ds: DataStructure = ...
    ) -> ServerSetup: ...
    def ProcessRequest(self, client_request: Request) -> Response: ...
