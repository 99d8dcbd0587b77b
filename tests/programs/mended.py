"""Programs that the engine once ran otherwise than PyTorch, shrunk by differential.py: goldens.py writes what PyTorch makes of them."""


def leaf(name, values, dtype="float32", shape=None):
    return [name, "tensor", [dtype, [len(values)] if shape is None else shape, values, True]]


def plain(name, values, dtype="float32", shape=None):
    return [name, "tensor", [dtype, [len(values)] if shape is None else shape, values]]


def backward(name):
    return ["", "backward", [name, "weights", True]]


CREATE = {"create_graph": True, "retain_graph": True}
PROGRAMS = [
    # Attention: scores that are all -inf without a mask; queries and keys that are written to afterwards.
    [
        leaf("x", [1, 0.5, -0.25, -1, -0.25, -0.75], shape=[2, 3]),
        plain("q", ["inf", 4, -8, -2, -8, -2.5], shape=[2, 3]),
        plain("k", [-1, -0.75, -0.25, -1, -0.25, -0.75], shape=[2, 3]),
        ["y", "scaled_dot_product_attention", ["$q", "$k", "$x"]],
        backward("$y"),
    ],
    [
        leaf("x", [-1.5, -0.5, 2, 0, 1.75, 0.75], shape=[2, 3]),
        ["k", "mul", ["$x", 2]],
        ["y", "scaled_dot_product_attention", ["$k", "$k", "$x"]],
        ["", "add_", ["$k", "$y"]],
        backward("$y"),
    ],
    # Writes to expanded tensors that touch no element twice, or write one number.
    [plain("x", [1, 2, 3]), ["y", "expand", ["$x", [2, 3]]], ["", "index_put_", ["$y", [[0, 1, 1], [None, None, 2]], 3]]],
    [plain("x", [1, 2, 3]), ["y", "expand", ["$x", [2, 3]]], plain("i", [1, 1], "int64"), ["", "index_put_", ["$y", ["$i"], -2]]],
    [plain("x", [1, 2, 3]), ["y", "expand", ["$x", [2, 3]]], plain("i", [0, 1], "int64"), ["", "index_fill_", ["$y", -2, "$i", 3]]],
    [plain("x", [1, 2, 3]), ["y", "expand", ["$x", [2, 3]]], plain("i", [1], "int64"), ["", "index_fill_", ["$y", 1, "$i", 3]]],
    [plain("x", [1, 2, 3]), ["y", "expand", ["$x", [2, 3]]], ["", "copy_", ["$y", "$y"]]],
    # ... or several: the last one stays, or all are added.
    *[
        [plain("x", [1, 2, 3]), ["y", "expand", ["$x", [2, 3]]], plain("i", [1, 0], "int64"), *extra, ["", "index_put_", ["$y", *arguments]]]
        for extra, arguments in [
            ([plain("s", [1, 2, 3, 4, 5, 6], shape=[2, 3])], [["$i"], "$s"]),
            ([plain("s", [1, 2, 3, 4, 5, 6], shape=[2, 3])], [["$i"], "$s", True]),
            ([plain("s", [1, 2, 3, 4], shape=[2, 2])], [[[None, None, None], "$i"], "$s"]),
            ([plain("j", [1, 1], "int64"), plain("s", [7, 8])], [["$i", "$j"], "$s"]),
            ([plain("j", [1, 1], "int64"), plain("s", [7, 8])], [["$i", "$j"], "$s", True]),
            ([leaf("s", [1, 2, 3, 4, 5, 6], shape=[2, 3])], [["$i"], "$s"]),
        ]
    ],
    [
        plain("x", [1, 2], shape=[2, 1]),
        leaf("s", [1, 2, 3, 4, 5, 6], shape=[2, 3]),
        ["y", "expand", ["$x", [2, 3]]],
        plain("i", [1, 0], "int64"),
        ["", "index_put_", ["$y", ["$i"], "$s"]],
        backward("$y"),
    ],
    *[
        [plain("x", [1, 2, 3], dtype), ["y", "expand", ["$x", [2, 3]]], plain("i", [1, 0], "int64"), plain("s", [1, 2, 3, 4, 5, 6], dtype, [2, 3]),
         ["", "index_put_", ["$y", ["$i"], "$s", True]]]
        for dtype in ("float16", "bfloat16")
    ],
    *[
        [leaf("w", [1, 2, 3]), ["x", "mul", ["$w", 2]], ["y", "expand", ["$x", [2, 3]]], plain("i", [1, 0], "int64"), *source, ["", "index_put_", ["$y", [0, "$i"], "$s"]],
         backward("$y"), ["g", "grad_of", [["$x"], ["$w"]], CREATE]]
        for source in ([plain("s", [7, 8])], [leaf("s", [7, 8])], [plain("s", [7], shape=[])])
    ],
    *[
        [*base, ["y", "expand", ["$x", [2, 3]]], mask, leaf("s", [5], shape=[]), ["", "masked_fill_", ["$y", "$m", value]], backward(way)]
        for base, value in [([leaf("w", [1, 2, 3]), ["x", "mul", ["$w", 2]]], 5), ([plain("x", [1, 2, 3])], "$s")]
        for mask in (plain("m", [1, 0, 0], "bool"), plain("m", [1, 0, 0, 0, 0, 1], "bool", [2, 3]))
        for way in ("$x", "$y")
    ],
    # No gradient passes a write to an expanded tensor on its way to the base.
    *[
        [leaf("w", [1, 2, 3]), ["x", "mul", ["$w", 2]], ["y", "expand", ["$x", [2, 3]]], plain("i", [1, 0], "int64"), write, backward(way)]
        for write in [["", "index_fill_", ["$y", 0, "$i", 3]], ["", "index_put_", ["$y", ["$i"], "$w"]], ["", "index_put_", ["$y", ["$i"], "$w", True]]]
        for way in ("$x", "$y")
    ],
    # A product of one matrix with several, which are written to afterwards.
    *[
        [
            leaf("a", [1, 2, 3, 4, 5, 6], shape=[2, 3]),
            ["s", "tensor", ["float32", [2, 3, 2], [1, -2, 3, 4, -5, 6, 7, 8, -9, 10, 11, 12], grad]],
            ["b", "mul", ["$s", 2]],
            ["y", "matmul", ["$a", "$b"]],
            ["", "add_", ["$b", 1]],
            step,
            *rest,
        ]
        for grad in (False, True)
        for step, rest in [
            (backward("$y"), []),
            (["g", "grad_of", [["$y"], ["$a"]], CREATE], [backward("$g")] if grad else []),
        ]
    ],
    *[
        [leaf("w", [1, 2, 3, 4, 5, 6], shape=[2, 3]), ["a", "mul", ["$w", 1]], ["e", "expand", ["$a", [2, 2, 3]]], leaf("b", [1, -2, 3, 4, -5, 6], shape=[3, 2]),
         ["y", "matmul", ["$e", "$b"]], ["", "add_", ["$a", 1]], *rest]
        for rest in ([backward("$y")], [[["g", "h"], "grad_of", [["$y"], ["$w", "$b"]], CREATE], backward("$g"), backward("$h")])
    ],
    # An index that is written to where no gradient needs it.
    [
        leaf("x", [0, -0.75, 1]),
        plain("i", [0, 0, 1], "int64"),
        plain("s", [-1, -1.25, -0.25]),
        ["y", "scatter_add", ["$x", 0, "$i", "$s"]],
        ["z", "index_add", ["$x", 0, "$i", "$s"]],
        ["", "add_", ["$i", "$i"]],
        backward("$y"),
        backward("$z"),
    ],
    # What was made of a view under no_grad is none.
    [
        leaf("w", [1, 2, 3, 4], shape=[2, 2]),
        ["", "no_grad", []],
        plain("i", [1, 0, 1], "int64"),
        ["x", "embedding", ["$i", "$w"]],
        ["", "end", []],
        leaf("s", [1, 2]),
        ["", "add_", ["$x", "$s"]],
        ["v", "select", ["$x", 0, 1]],
        ["", "mul_", ["$v", "$s"]],
        backward("$x"),
    ],
    # Infinity, NaN and signs of 0.
    [plain("x", ["-inf", -0.0, 4, "inf"]), ["y", "pow", ["$x", 0.5]], ["z", "pow", ["$x", -0.5]]],
    [plain("x", ["-inf", -0.0, 4, "inf"]), plain("p", [0.5]), ["y", "pow", ["$x", "$p"]]],
    *[
        [leaf("x", ["-inf", -0.0, 4, "inf"], dtype), plain("p", [2, 1.5, 1, 0.5, -0.5], dtype, [5, 1]), ["y", "pow", ["$x", "$p"]],
         ["g", "grad_of", [["$y"], ["$x"]], CREATE], backward("$g")]
        for dtype in ("float32", "float64", "float16", "bfloat16")
    ],
    *[
        [leaf("x", [2, -0.25, 0.5], dtype), plain("p", [-2, 0, 2], "int64"), ["y", "pow", ["$x", "$p"]], ["z", "div", ["$y", "$p"]],
         ["g", "grad_of", [["$z"], ["$x"]], CREATE], backward("$g")]
        for dtype in ("float32", "float64", "float16", "bfloat16")
    ],
    [leaf("x", [2, 0, -0.75]), ["y", "atan2", ["$x", "$x"]], ["z", "rdiv", ["$y", 0]], backward("$z")],
    [leaf("x", [2, 0, -0.75]), ["y", "pow", ["$x", "$x"]], ["z", "mul", ["$y", "nan"]], backward("$z")],
    [
        leaf("x", [1, 2, -3, 0.5, 0, 1], shape=[2, 3]),
        plain("t", [0, 2], "int64"),
        ["y", "cross_entropy", ["$x", "$t"], {"reduction": "none"}],
        ["z", "div", ["$y", 0]],
        backward("$z"),
    ],
    [
        leaf("x", [1.5, 2], shape=[2, 1]),
        plain("t", [0, 0], "int64"),
        plain("s", [-1, 2]),
        ["y", "cross_entropy", ["$x", "$t"], {"reduction": "none"}],
        ["z", "atan2", ["$y", "$s"]],
    ],
    # Second derivatives at 0.
    [leaf("x", [-0.5, 0, 1]), ["y", "elu", ["$x"]], [["g"], "grad_of", [["$y"], ["$x"]], CREATE], backward("$g")],
    [leaf("x", [0, 0]), ["y", "vector_norm", ["$x", 2, 0]], [["g"], "grad_of", [["$y"], ["$x"]], CREATE], backward("$g")],
    [leaf("x", [1, 0]), ["y", "atan2", ["$x", "$x"]], [["g"], "grad_of", [["$y"], ["$x"]], CREATE], backward("$g")],
    # Results of ops lie in rows of their own.
    [plain("x", [1, 2, 3, 4, 5, 6], shape=[2, 3]), plain("i", [1, 0], "int64"), ["y", "index", ["$x", [[None, None, None], "$i"]]], ["z", "view", ["$y", [4]]]],
    [
        leaf("x", [1, 2, 3, 4], shape=[2, 2]),
        plain("v", [3, -1]),
        ["y", "matmul", ["$x", "$v"]],
        ["", "retain_grad", ["$y"]],
        ["z", "view", ["$y", [2, 1]]],
        ["", "mul_", ["$y", "$v"]],
        backward("$z"),
    ],
    # The gradient of a function that is linear in pieces requires grad.
    [leaf("x", [-0.5, 0.25, 1]), ["y", "leaky_relu", ["$x"]], [["g"], "grad_of", [["$y"], ["$x"]], CREATE], backward("$g")],
    [leaf("x", [-0.5, 0.25], shape=[2, 1]), ["y", "prod", ["$x", 1]], [["g"], "grad_of", [["$y"], ["$x"]], CREATE], backward("$g")],
    [leaf("x", [-0.5, 0.25], shape=[2, 1]), ["y", "cumprod", ["$x", 1]], [["g"], "grad_of", [["$y"], ["$x"]], CREATE]],
    # A write to a view takes part in one pass, even where it saved nothing, and not in the gradient of an expanded tensor.
    [
        plain("x", [1, -2, 1.25]),
        leaf("w", [2, -1]),
        ["v", "slice", ["$x", 0, 1, 3, 1]],
        ["", "add_", ["$v", "$w"]],
        ["", "backward", ["$x", "weights", False]],
        backward("$x"),
    ],
    [
        plain("x", [-1.25, -1, 1, 2, 1.75, 1], shape=[2, 3]),
        plain("m", [1, 0, 0], "bool", [1, 3]),
        leaf("w", [0.5]),
        ["y", "expand", ["$x", [2, 2, 3]]],
        ["z", "detach", ["$y"]],
        ["v", "slice", ["$z", 1, -1, 1, 1]],
        ["", "masked_scatter_", ["$v", "$m", "$w"]],
        backward("$v"),
    ],
    # A leaf that has become the result of an op.
    [leaf("x", [1.75, 0]), ["y", "softmax", ["$x", -1]], ["", "requires_grad_", ["$x", False]], ["", "div_", ["$x", "$y"]], backward("$x")],
    [
        leaf("x", [2, -1.5]),
        ["y", "mul", ["$x", 3]],
        ["", "requires_grad_", ["$x", False]],
        ["", "add_", ["$x", 1]],
        backward("$y"),
    ],
    # What a rule does not ask for may be freed.
    [
        leaf("x", [1.5, 1.75, -0.25]),
        plain("i", [1, 0, 1], "int64"),
        plain("s", [-1.5, 0.75, -0.75]),
        ["y", "sub", ["$x", 3]],
        ["", "scatter_add_", ["$y", 0, "$i", "$s"]],
        ["", "backward", ["$y", "weights", False]],
        backward("$y"),
    ],
    # A view that has lost its place in the graph has no gradient to forget.
    [leaf("x", [-1.75, 0]), ["y", "atan", ["$x"]], ["v", "split", ["$y", 2, 0]], ["", "zero_", ["$y"]], ["", "zero_grad", ["$v"]]],
    # Elements of their own; one number into repeated ones.
    [plain("x", [1, 2, 3], shape=[1, 3]), ["y", "repeat", ["$x", [2, 2]]], ["", "add_", ["$y", 1]]],
    [plain("x", [-1], shape=[1, 1]), ["y", "expand", ["$x", [2, 2, 2]]], plain("i", [0], "int64"), ["", "index_put_", ["$y", [None, "$i", 1], -2]]],
    # Any dtype where there is nothing to compute.
    [plain("x", [], "bool", [0, 3]), plain("y", [1] * 6, "bool", [3, 2]), ["z", "matmul", ["$x", "$y"]]],
    [plain("x", [], "int64", [0, 3]), ["y", "softmax", ["$x", 1]]],
    # A view changed while nothing is recorded stays one.
    [plain("x", [-0.75, -0.25, 1]), ["v", "slice", ["$x", 0, 1, 3]], ["", "clamp_", ["$v", -0.5, 0.5]], leaf("y", [1, 3]), ["", "mul_", ["$v", "$y"]], backward("$x")],
    # A view of all of a number.
    [leaf("x", [2], shape=[]), ["y", "squeeze", ["$x", [0]]], backward("$y")],
]
