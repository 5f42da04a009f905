import os
import pathlib

import pytest


@pytest.fixture
def as_user():
    """Words that run a command as another user."""
    if os.geteuid() != 0:
        pytest.skip("needs root: acts as other users")
    return lambda uid: ["setpriv", f"--reuid={uid}", f"--regid={uid}", "--clear-groups", "--inh-caps=-all"]


@pytest.fixture
def open_lab(make_lab, tmp_path):
    """A machine that every user may enter."""
    for directory in (tmp_path, *tmp_path.parents):
        if directory.is_relative_to("/tmp") and directory != pathlib.Path("/tmp"):
            directory.chmod(0o755)
    return make_lab("2xH100")
