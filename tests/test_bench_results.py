"""results.csv: rows are read back unchanged, partial lines are cut, other versions are refused."""

from pathlib import Path

import pytest

from vnlem.bench import results
from vnlem.bench.protocols import Case
from vnlem.bench.results import ResultsFile, Row


def row(image='a/ö, "x".png', snr=12.5):
    case = Case("paper", 64, 0.3)
    measures = dict.fromkeys(results.MEASURES, None) | {"snr": snr, "fsim": 0.9}
    return Row(image, "a", case, "nlm", '{"a": 1}', "abc", 1000, "d", 64, 64, 3.5, measures, 0.25, 80.0)


def test_rows_come_back_as_they_were_written(tmp_path):
    path = tmp_path / "results.csv"
    with ResultsFile(path) as file:
        file.append(row())
        file.append(row("b.png", snr=-1e-9))
    assert list(results.read_rows(path)) == [row(), row("b.png", snr=-1e-9)]


def test_names_that_are_no_valid_text_survive(tmp_path):
    path = tmp_path / "results.csv"
    with ResultsFile(path) as file:
        file.append(row("caf\udce9.png"))
    assert next(results.read_rows(path)).image == "caf\udce9.png"


@pytest.mark.parametrize("cut", [1, 20, 60])
def test_a_torn_last_line_is_cut_off_and_the_rest_kept(tmp_path, cut):
    path = tmp_path / "results.csv"
    with ResultsFile(path) as file:
        file.append(row("a.png"))
        file.append(row("b.png"))
    path.write_bytes(path.read_bytes()[:-cut])
    with ResultsFile(path) as file:
        assert {key.image for key in file.rows} == {"a.png"}
        file.append(row("b.png"))
    assert [found.image for found in results.read_rows(path)] == ["a.png", "b.png"]


@pytest.mark.parametrize("left", [0, 5, 30, 40])
def test_a_file_that_was_torn_within_its_head_is_begun_again(tmp_path, left):
    path = tmp_path / "results.csv"
    ResultsFile(path).close()
    whole = path.read_bytes()
    path.write_bytes(whole[:left])
    ResultsFile(path).close()
    assert path.read_bytes() == whole


def test_results_of_another_version_are_refused_and_fresh_throws_them_away(tmp_path):
    path = tmp_path / "results.csv"
    with ResultsFile(path) as file:
        file.append(row())
    old = path.read_text().replace("vnlem bench ", "vnlem bench 0.0.")
    path.write_text(old)
    with pytest.raises(ValueError, match=r"was written by vnlem bench 0.0.*--fresh"):
        ResultsFile(path)
    assert path.read_text() == old
    ResultsFile(path, fresh=True).close()
    assert list(results.read_rows(path)) == []


def test_results_of_other_sources_are_refused(tmp_path, monkeypatch):
    path = tmp_path / "results.csv"
    with ResultsFile(path) as file:
        file.append(row())
    monkeypatch.setattr(results, "sources_hash", lambda: "0123456789ab")
    with pytest.raises(ValueError, match=r"was written by vnlem bench .* sources .* 0123456789ab; choose"):
        ResultsFile(path)


def test_two_runs_do_not_write_to_one_file(tmp_path):
    path = tmp_path / "results.csv"
    with ResultsFile(path) as file:
        file.append(row())
        with pytest.raises(ValueError, match="another run is writing to"):
            ResultsFile(path)
        with pytest.raises(ValueError, match="another run is writing to"):
            ResultsFile(path, fresh=True)
    with ResultsFile(path) as file:
        assert len(file.rows) == 1


def test_the_hash_of_the_sources_follows_what_makes_figures(tmp_path, monkeypatch):
    import shutil

    from vnlem.bench import sources

    package = tmp_path / "vnlem"
    ignored = shutil.ignore_patterns("__pycache__", "assets")
    shutil.copytree(Path(sources.__file__).parents[1], package, ignore=ignored)
    monkeypatch.setattr(sources, "__file__", str(package / "bench" / "sources.py"))

    def now():
        sources.sources_hash.cache_clear()
        return sources.sources_hash(), sources.sources_hash("metrics")

    before = now()
    (package / "cli" / "table.py").write_text("changed")
    assert now() == before
    (package / "methods" / "nlm.py").write_text("changed")
    assert now()[0] != before[0]
    assert now()[1] == before[1]
    (package / "metrics" / "emd.py").write_text("changed")
    assert now()[1] != before[1]
    sources.sources_hash.cache_clear()


def test_a_file_of_something_else_is_left_alone(tmp_path):
    path = tmp_path / "results.csv"
    path.write_text("name,value\nx,1\n")
    with pytest.raises(ValueError, match=r"was written by something else"):
        ResultsFile(path)
    assert path.read_text() == "name,value\nx,1\n"


def test_a_damaged_line_is_named(tmp_path):
    path = tmp_path / "results.csv"
    with ResultsFile(path) as file:
        file.append(row("a.png"))
        file.append(row("b.png"))
    lines = path.read_text().splitlines()
    lines[2] = lines[2][:40]
    path.write_text("\n".join(lines) + "\n")
    with pytest.raises(ValueError, match="line 3 of"):
        ResultsFile(path)
