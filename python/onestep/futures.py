"""Results that are there later (torch.futures)."""

from __future__ import annotations

import concurrent.futures
from typing import Any, Callable, Generic, Iterable, TypeVar

__all__ = ["Future", "collect_all", "wait_all"]


T = TypeVar("T")


class Future(Generic[T]):
    """A result, or an exception, that somebody sets later, in another thread, too. `devices` is for CUDA."""

    def __init__(self, *, devices: Any = None) -> None:
        self._future: concurrent.futures.Future = concurrent.futures.Future()

    def done(self) -> bool:
        """Whether it is there."""
        return self._future.done()

    def wait(self) -> Any:
        """The result as soon as it is there; raises the exception."""
        return self._future.result()

    def value(self) -> Any:
        """The result, which must be there."""
        if not self.done():
            raise RuntimeError("Future.value: the result is not there yet (wait() waits for it)")
        return self.wait()

    def set_result(self, result: Any) -> None:
        self._future.set_result(result)

    def set_exception(self, result: BaseException) -> None:
        if not isinstance(result, Exception):
            raise AssertionError(f"{result} is of type {type(result)}, not an Exception.")
        self._future.set_exception(result)

    def add_done_callback(self, callback: Callable[[Future], None]) -> None:
        """callback(self) once the result is there."""
        self._future.add_done_callback(lambda _: callback(self))

    def then(self, callback: Callable[[Future], Any]) -> Future:
        """The future of callback(self)."""
        following: Future = Future()

        def go_on(done: Future) -> None:
            try:
                following.set_result(callback(done))
            except Exception as error:
                following.set_exception(error)

        self.add_done_callback(go_on)
        return following


def collect_all(futures: Iterable[Future]) -> Future:
    """The future of the list of all futures, when each of them is done."""
    waited = list(futures)
    result: Future = Future()

    def look(_: Any = None) -> None:
        if all(each.done() for each in waited) and not result.done():
            result.set_result(waited)

    for each in waited:
        each.add_done_callback(look)
    look()
    return result


def wait_all(futures: Iterable[Future]) -> list[Any]:
    """All results; raises the first exception."""
    return [each.wait() for each in collect_all(futures).wait()]
