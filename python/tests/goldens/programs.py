"""What the programs of layers.py have in common: the list of them, and their results as JSON has them."""

CASES = {}


def case(function):
    CASES[function.__name__] = function
    return function


def plain(T, value):
    """value with [shape, elements] in the place of tensors, as JSON has it."""
    if isinstance(value, T.Tensor):
        return [list(value.shape), value.detach().reshape(-1).tolist()]
    if isinstance(value, (list, tuple)):
        return [plain(T, part) for part in value]
    if isinstance(value, dict):
        return {str(key): plain(T, part) for key, part in value.items()}
    return value


def result(T, name):
    T.manual_seed(7)
    return plain(T, CASES[name](T))


def refused(call):
    """The text of the error of call()."""
    try:
        call()
    except Exception as error:  # noqa: BLE001 - whichever it is
        return str(error)
    return "no error"
