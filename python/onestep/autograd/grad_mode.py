"""Whether ops are recorded: contexts that decorate functions, too (torch.autograd.grad_mode)."""

from __future__ import annotations

import functools
import inspect

from onestep import _C


class _Context:
    """A context that a function can be decorated with, called or not: `@no_grad` and `@no_grad()`."""

    def __new__(cls, function=None, *args, **kwargs):
        if args or kwargs or function is None or not callable(function):
            return super().__new__(cls)
        return cls()(function)

    def __call__(self, function):
        if inspect.isclass(function):
            function.__init__ = self(function.__init__)
            return function
        if inspect.isgeneratorfunction(function):
            return self._around_generator(function)

        @functools.wraps(function)
        def wrapped(*args, **kwargs):
            with self._clone():
                return function(*args, **kwargs)

        return wrapped

    def _around_generator(self, function):
        @functools.wraps(function)
        def wrapped(*args, **kwargs):
            generator, sent = function(*args, **kwargs), None
            while True:
                with self._clone():
                    try:
                        value = generator.send(sent)
                    except StopIteration as stop:
                        return stop.value
                sent = yield value

        return wrapped

    def _clone(self):
        return type(self)()


class no_grad(_Context):
    """Ops inside are not recorded."""

    on = False

    def __enter__(self):
        self.before = _C.is_grad_enabled()
        _C._set_grad_enabled(self.on)

    def __exit__(self, *_):
        _C._set_grad_enabled(self.before)


class enable_grad(no_grad):
    """Ops inside are recorded, also within no_grad."""

    on = True


class set_grad_enabled(_Context):
    """Switches recording on or off, at once; as a context until its end."""

    def __init__(self, mode: bool):
        self.before, self.mode = _C.is_grad_enabled(), bool(mode)
        _C._set_grad_enabled(self.mode)

    def __call__(self, function):
        _C._set_grad_enabled(self.before)
        return super().__call__(function)

    def __enter__(self):
        _C._set_grad_enabled(self.mode)

    def __exit__(self, *_):
        _C._set_grad_enabled(self.before)

    def _clone(self):
        before = _C.is_grad_enabled()
        clone = type(self)(self.mode)
        clone.before = before
        return clone


class inference_mode(_Context):
    """Ops inside are not recorded, and what they make can never take part in a graph."""

    def __init__(self, mode: bool = True):
        self.mode = mode is True or callable(mode)

    def __enter__(self):
        self.switch = _C._InferenceSwitch()
        self.switch.enter(self.mode)

    def __exit__(self, *_):
        self.switch.exit()

    def _clone(self):
        return type(self)(self.mode)
