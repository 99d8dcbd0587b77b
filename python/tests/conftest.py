"""Marks: `long` is what takes long and runs where CI is set."""

import os

import pytest


def pytest_configure(config):
    config.addinivalue_line("markers", "long: takes long (CI=1 runs it)")


def pytest_collection_modifyitems(items):
    if os.environ.get("CI"):
        return
    for item in items:
        if item.get_closest_marker("long"):
            item.add_marker(pytest.mark.skip(reason="it takes long (CI=1 runs it)"))
