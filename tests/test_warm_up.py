"""Kernels compiled ahead are found by later processes."""

import os
import subprocess
import sys

import pytest

import vnlem


@pytest.mark.slow
def test_a_later_process_compiles_nothing(tmp_path, monkeypatch):
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    assert set(vnlem.warm_up(["nlm", "NLM"], processes=2)) == {"nlm"}
    stored = {path.name for path in tmp_path.rglob("*.nbi")}
    assert stored
    call = "import numpy as np, vnlem; vnlem.denoise_nlm(np.eye(32) * 100, 5)"
    subprocess.run([sys.executable, "-W", "ignore", "-c", call], env=os.environ, check=True)
    assert {path.name for path in tmp_path.rglob("*.nbi")} == stored


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ((["magic"],), ValueError, "unknown method 'magic'"),
        (("nlm",), TypeError, r"pass \['nlm'\]"),
        ((["nlm"], 0), ValueError, "processes must be at least 1"),
    ],
)
def test_wrong_arguments_are_told(arguments, error, message):
    with pytest.raises(error, match=message):
        vnlem.warm_up(*arguments)


def test_a_failing_process_is_told_in_one_sentence(monkeypatch):
    monkeypatch.setattr("vnlem.warming._CHILD", "raise OSError('no disk')")
    with pytest.raises(RuntimeError, match="the kernels of nlm could not be compiled: OSError: no disk"):
        vnlem.warm_up(["nlm"])


def test_the_command_says_what_is_ready(cli):
    status, out, _ = cli("warm-up", "--methods", "nlm")
    assert status == 0
    assert out.startswith("ready: nlm ")
    assert cli("warm-up", "--methods", "nlm", "--quiet")[1] == ""
    assert cli("warm-up", "--methods", "magic")[0] == 2
