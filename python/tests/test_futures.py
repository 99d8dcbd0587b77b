import threading

import pytest

import onestep as torch
from onestep.futures import Future, collect_all, wait_all


def test_results_that_are_there_later():
    first, second = Future(), torch.Future()
    twice = first.then(lambda done: 2 * done.value())
    both = collect_all([first, second])
    with pytest.raises(RuntimeError, match="not there yet"):
        first.value()
    thread = threading.Thread(target=lambda: (second.set_result(1), first.set_result(4)))
    thread.start()
    assert twice.wait() == 8 and wait_all([first, second]) == [4, 1] and [f.value() for f in both.wait()] == [4, 1]
    thread.join()
    failed = Future()
    after = failed.then(lambda done: done.value())
    failed.set_exception(ValueError("no"))
    assert failed.done() and collect_all([]).wait() == []
    with pytest.raises(ValueError, match="no"):
        after.wait()
