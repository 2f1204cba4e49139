"""What the docs show as output is what the commands print."""

import pytest
from docs_output import PAGE, agree, shown_commands, stale


@pytest.mark.slow
def test_shown_output_is_what_the_commands_print():
    lines = PAGE.read_text(encoding="utf-8").splitlines()
    assert len(list(shown_commands(lines))) >= 16
    assert [shown.command for shown, _ in stale(lines, slow=False)] == []


def test_other_times_agree_and_other_words_or_figures_do_not():
    shown = ["    nlm, sigma 25.01 (estimated), 1.3 s: a.png", "    a.png   18.73"]
    assert agree(shown, ["    nlm, sigma 25.02 (estimated), 7 s: a.png", "    a.png    18.74"])
    assert not agree(shown, ["    nlm, sigma 26.01 (estimated), 1.3 s: a.png", "    a.png   18.73"])
    assert not agree(shown, ["    nlem, sigma 25.01 (estimated), 1.3 s: a.png", "    a.png   18.73"])
    assert not agree(shown, shown[:1])


def test_lines_may_be_omitted():
    printed = ["    a 1", "    b 2", "    c 3", "    name   dB seconds", "    nlm   9.1  0.5"]
    assert agree(["    a 1", "    ...", "    name   dB seconds", "    nlm   9.1  7"], printed)
    assert agree(["    ...", "    c 3", "    ..."], printed)
    assert not agree(["    a 1", "    ...", "    c 4", "    ..."], printed)
    assert not agree(["    c 3", "    ...", "    a 1"], printed)
