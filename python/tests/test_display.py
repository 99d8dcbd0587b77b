"""Pictures of attention weights and losses: what is in them, where it is, and that they are well-formed."""

import math
import re
import xml.etree.ElementTree as ElementTree

import pytest

import onestep
from onestep.display import attention_map, loss_graph

SVG = "{http://www.w3.org/2000/svg}"
WORDS = ["one", "a < b", "two\nthree"]
WEIGHTS = [[1.0, 0.0, 0.0], [0.25, 0.75, 0.0], [0.5, 0.25, 0.25]]


def parse(picture):
    return ElementTree.fromstring(picture.svg)


def texts(picture, kind):
    return [t.text for t in parse(picture).iter(f"{SVG}text") if kind in (t.get("class") or "").split()]


def cells(picture, head=0):
    """{(row, column): opacity} of the cells that are drawn."""
    groups = [g for g in parse(picture).iter(f"{SVG}g") if g.get("class") == "cells"]
    found = {}
    for path in groups[head]:
        for j, i in re.findall(r"M(\d+) (\d+)h1v1h-1z", path.get("d")):
            assert (int(i), int(j)) not in found
            found[int(i), int(j)] = float(path.get("opacity"))
    return found


def curves(picture):
    """The points of the curves in the graph; those of the legend, which end in h22, apart."""
    paths = [p for p in parse(picture).iter(f"{SVG}path") if "curve" in p.get("class") and not p.get("d").endswith("h22")]
    return [[tuple(map(float, p.split())) for p in re.split("[ML]", path.get("d"))[1:]] for path in paths]


def test_a_cell_is_as_strong_as_the_root_of_its_weight():
    found = cells(attention_map(WEIGHTS, WORDS))
    assert set(found) == {(0, 0), (1, 0), (1, 1), (2, 0), (2, 1), (2, 2)}  # a row is a query; 0 is not drawn
    for (i, j), opacity in found.items():
        assert abs(opacity - math.sqrt(WEIGHTS[i][j])) <= 1 / 64 + 1e-3


def test_the_words_stand_on_both_axes():
    seen = ["one", "a\u2423<\u2423b", "two\u21b5three"]
    assert texts(attention_map(WEIGHTS, WORDS), "word") == seen + seen
    assert texts(attention_map(WEIGHTS, WORDS, keys=["x", "y", "z"]), "word") == seen + ["x", "y", "z"]
    assert texts(attention_map([[1.0]], ["a very long token"]), "word") == ["a\u2423very\u2423long\u2026"] * 2


def test_the_weights_stand_in_the_cells_of_a_small_map():
    assert texts(attention_map(WEIGHTS, WORDS), "number") == ["1.00", "0", "0", "0.25", "0.75", "0", "0.50", "0.25", "0.25"]
    assert texts(attention_map(onestep.eye(13), ["t"] * 13), "number") == []


def test_a_map_for_each_head():
    weights = onestep.stack([onestep.tensor(WEIGHTS), onestep.eye(3)])
    picture = attention_map(weights.requires_grad_(), WORDS)
    assert texts(picture, "title") == ["head 0", "head 1"]
    assert cells(picture, head=1) == {(0, 0): 1.0, (1, 1): 1.0, (2, 2): 1.0}
    assert repr(picture) == "<attention map: 2 heads, 3 x 3>"


def test_weights_may_be_an_array_of_another_library():
    class Array:
        def tolist(self):
            return WEIGHTS

    assert attention_map(Array(), WORDS).svg == attention_map(onestep.tensor(WEIGHTS), WORDS).svg


def test_every_word_has_room_up_to_64():
    assert len(texts(attention_map(onestep.eye(64), ["t"] * 64), "word")) == 128
    assert len(texts(attention_map(onestep.eye(100), ["t"] * 100), "word")) == 100  # one in two


def test_a_row_of_nan_is_left_empty():
    assert cells(attention_map([[1.0, 0.0], [math.nan, math.nan]], ["a", "b"])) == {(0, 0): 1.0}


@pytest.mark.parametrize("weights, words, message", [
    (onestep.eye(3), WORDS[:2], "attention_map: a word for each row and column: got 3 queries and 3 keys, 2 and 2 words"),
    (onestep.zeros(3), WORDS, r"attention_map: weights must be \[T, T\], or \[H, T, T\] of several heads: got \[3\]"),
    (onestep.zeros(0, 0), [], r"attention_map: weights must be .* got \[0, 0\]"),
])
def test_weights_that_do_not_fit_are_refused(weights, words, message):
    with pytest.raises(onestep.ShapeError, match=message):
        attention_map(weights, words)


def test_a_loss_graph_goes_from_the_first_step_to_the_last():
    picture = loss_graph({"step": [0, 10, 20], "loss": [3.0, 2.0, 1.0], "val_loss": [None, 2.5, None], "lr": [0.1] * 3})
    loss, validation = curves(picture)
    assert loss[0][0] < loss[1][0] < loss[2][0] and loss[0][1] < loss[1][1] < loss[2][1]  # downwards is larger in SVG
    assert loss[1] == ((loss[0][0] + loss[2][0]) / 2, (loss[0][1] + loss[2][1]) / 2)
    assert len(validation) == 1 and validation[0][0] == loss[1][0] and loss[0][1] < validation[0][1] < loss[1][1]
    assert repr(picture) == "<loss graph: loss, val_loss>"


def test_a_long_curve_is_smoothed_and_what_is_not_finite_left_out():
    raw, smooth = curves(loss_graph({"loss": [2.0 + (-1) ** i for i in range(100)] + [math.nan, math.inf, None]}))
    assert len(raw) == len(smooth) == 100

    def swing(curve):
        ys = [y for _, y in curve[50:]]
        return max(ys) - min(ys)

    assert swing(smooth) == pytest.approx((1 - 0.6) / (1 + 0.6) * swing(raw), rel=0.01)  # of a moving average of share 0.6
    assert smooth[0] == raw[0]


def test_a_loss_graph_of_little():
    for columns in ({"loss": []}, {"loss": [1.0]}, {"loss": [2.0, 2.0]}, {"loss": [None]}):
        assert parse(loss_graph(columns)).get("class") == "onestep"
    with pytest.raises(onestep.ConfigError, match="loss_graph: no column's name ends in loss: lr"):
        loss_graph({"lr": [1.0]})


def test_a_picture_is_shown_and_saved(tmp_path):
    picture = attention_map(WEIGHTS, WORDS)
    assert picture._repr_html_() == picture._repr_svg_() == picture.svg
    picture.save(tmp_path / "map.svg")
    assert (tmp_path / "map.svg").read_text(encoding="utf-8") == picture.svg
    assert "script" not in picture.svg
