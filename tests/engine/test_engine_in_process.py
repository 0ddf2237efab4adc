import operator

import numpy as np

from vesper.engine.engine import Call, InProcessEngine


def test_results_have_the_numbers_of_their_calls_and_come_in_another_order() -> None:
    engine = InProcessEngine(2)
    calls = [Call(k % 2, operator.add, (engine.share(k), 10)) for k in range(4)]
    assert list(engine.results(calls)) == [(3, 13), (2, 12), (1, 11), (0, 10)]
    assert [call.worker for call in engine.calls_made] == [1, 0, 1, 0]


def test_workers_get_copies() -> None:
    engine, values = InProcessEngine(1), np.zeros(3)
    [(_, filled)] = engine.results([Call(0, np.add, (values, 1))])
    [(_, nothing)] = engine.results([Call(0, np.copyto, (values, 7))])
    assert filled.tolist() == [1, 1, 1]
    assert nothing is None
    assert values.tolist() == [0, 0, 0]
