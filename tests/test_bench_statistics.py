"""The statistics of an experiment against closed forms and against scipy, and the tables."""

import numpy as np
import pytest
from scipy import stats

from vnlem.bench import statistics, tables
from vnlem.bench.datasets import Item
from vnlem.bench.protocols import Case
from vnlem.bench.results import Row
from vnlem.bench.summary import summarise_case
from vnlem.bench.variants import Variant, parse_variants

CASE = Case("paper", 512, 0.3)


def test_holm_steps_down_and_never_decreases():
    assert statistics.holm([0.04, 0.01, 0.02, 0.9]) == pytest.approx([0.08, 0.04, 0.06, 0.9])


def test_a_constant_shift_is_certain_for_the_paired_test_and_hidden_from_mann_whitney():
    # The images differ much more from each other than the methods do: the paper's test cannot see the gain.
    images = np.random.default_rng(0).normal(15, 3, 60)
    shift = np.random.default_rng(1).normal(0.2, 0.05, 60)
    (row,) = statistics.compare({"a": {"snr": images + shift}, "b": {"snr": images}}, ["snr"])
    assert row["wilcoxon"]["p"] < 1e-8
    assert row["mann_whitney"]["p"] > 0.3
    assert row["wilcoxon"]["effect"] == pytest.approx(1)
    assert row["wins"] == 60
    assert row["interval"][0] < row["difference"] < row["interval"][1]
    assert row["interval"] == pytest.approx(
        [0.2 - 1.96 * 0.05 / 60**0.5, 0.2 + 1.96 * 0.05 / 60**0.5], abs=0.02
    )


def test_tests_agree_with_scipy():
    rng = np.random.default_rng(3)
    a, b = rng.normal(0, 1, 40), rng.normal(0.4, 1, 40)
    (row,) = statistics.compare({"a": {"rms": a}, "b": {"rms": b}}, ["rms"])
    assert row["mann_whitney"]["p"] == stats.mannwhitneyu(a, b).pvalue
    assert row["wilcoxon"]["p"] == stats.wilcoxon(a, b).pvalue
    # For RMS the smaller value wins.
    assert row["wins"] == (a < b).sum()


def test_intervals_do_not_change_from_run_to_run_and_cover_the_mean():
    draws = np.random.default_rng(5).normal(0, 1, (200, 30, 1))
    limits = np.array([statistics.bootstrap_intervals(draw)[:, 0] for draw in draws])
    covered = ((limits[:, 0] < 0) & (limits[:, 1] > 0)).mean()
    assert 0.88 < covered < 0.98
    again = statistics.bootstrap_intervals(draws[0])
    assert np.array_equal(again[:, 0], limits[0])


def test_one_image_has_numbers_but_no_interval():
    (row,) = statistics.compare({"a": {"snr": np.array([2.0])}, "b": {"snr": np.array([1.0])}}, ["snr"])
    assert row["interval"] is None
    assert row["wilcoxon"]["p"] == 1
    assert statistics.describe([2.0]) == {"n": 1, "mean": 2.0, "std": None}


def make_rows(values):
    """Rows of {method label: (hash, one SNR per image)}."""
    rows = {}
    items = [
        Item(f"{k}.png", "", "even" if k % 2 == 0 else "odd", k)
        for k in range(len(next(iter(values.values()))[1]))
    ]
    for label, (hash_, numbers) in values.items():
        for item, number in zip(items, numbers, strict=True):
            if number is None:
                continue
            measures = dict.fromkeys(CASE.measures, None) | {"snr": number}
            key = (item.name, CASE.name, hash_)
            rows[key] = Row(item.name, "", CASE, label, "", hash_, 1, "", 8, 8, 1.0, measures, 1.0, 1.0)
    return items, rows


def test_methods_are_compared_on_the_images_that_all_have():
    nlem, nlm = parse_variants(["nlem", "nlm"], "paper")
    numbers = [10.0, 11, 12, 13, 14, 15, 16, 17]
    items, rows = make_rows(
        {
            "noisy": ("noisy", [5.0] * 8),
            "nlem": (nlem.hash, numbers),
            "nlm": (nlm.hash, [None, *[n + 1 for n in numbers[1:]]]),
        }
    )
    found = summarise_case(items, CASE, [nlem, nlm], rows)
    assert found["n_images"] == 7
    assert found["incomplete_images"] == ["0.png"]
    assert found["methods"]["nlem"]["snr"]["mean"] == pytest.approx(14)
    assert found["categories"]["even"]["n_images"] == 3
    (row,) = (row for row in found["comparisons"] if row["measure"] == "snr")
    assert row["difference"] == pytest.approx(-1)


def test_the_table_has_the_papers_numbers_beside_ours_and_marks_the_best():
    nlem, auto = parse_variants(["nlem", "nlem:auto"], "paper")
    items, rows = make_rows(
        {
            "noisy": ("noisy", [5.0] * 8),
            "nlem": (nlem.hash, list(range(10, 18))),
            "nlem:auto": (auto.hash, list(range(12, 20))),
        }
    )
    found = summarise_case(items, CASE, [nlem, auto], rows)
    text = tables.markdown(found, [nlem, auto])
    assert "| | noisy | nlem | nlem [paper] | nlem:auto |" in text
    assert "| SNR dB | 5.00 ± 0.00 | 13.50 ± 2.45 | 13.33 ± 2.78 | **15.50 ± 2.45** |" in text
    # 2 dB more on each of eight images: the smallest p value that a paired test can give.
    assert "| SNR dB: nlem less nlem:auto | -2.000 | -2.000 to -2.000 | 0, 8 | 0.0078 | 0.15 |" in text
    assert "| even | 4 | 13.00 | 15.00 |" in text
    latex = tables.latex(found, [nlem, auto])
    assert (
        r"SNR dB & 5.00 $\pm$ 0.00 & 13.50 $\pm$ 2.45 & 13.33 $\pm$ 2.78 & {\bf 15.50 $\pm$ 2.45} \\" in latex
    )


def test_the_papers_numbers_stand_only_beside_the_papers_experiment():
    (nlem,) = parse_variants(["nlem"], "paper")
    assert tables.paper_method(nlem, {"protocol": "paper", "size": 512, "noise": 0.3}) == "nlem"
    assert tables.paper_method(nlem, {"protocol": "paper", "size": 200, "noise": 0.3}) == ""
    (changed,) = parse_variants(["nlem:bandwidth=5"], "paper")
    assert tables.paper_method(changed, {"protocol": "paper", "size": 512, "noise": 0.3}) == ""


def test_a_method_may_be_told_that_the_noise_depends_on_the_signal():
    white, modelled = parse_variants(["nlm", "nlm:poisson-gaussian"], "pairs")
    assert dict(modelled.arguments)["noise_model"] == "poisson-gaussian"
    clean = np.add.outer(np.linspace(10, 200, 64), np.zeros(64))
    noisy = np.random.default_rng(0).poisson(clean).astype(float)
    errors = [np.std(variant.run(noisy, 2.0, 1) - clean) for variant in (white, modelled)]
    assert errors[1] < 0.5 * errors[0]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("nonsense", "unknown method 'nonsense'"),
        ("nlem:fast", "'fast' in 'nlem:fast' is neither a preset"),
        ("nlm:paper", "preset='paper' exists for"),
        ("nlm:angle=3", "has no parameter 'angle'"),
        ("skimage-nlm:auto", "takes no preset"),
        ("nlm,NLM", "the same thing twice: nlm and NLM"),
        (",", "names no method"),
    ],
)
def test_a_method_that_does_not_exist_is_refused_with_a_reason(text, message):
    with pytest.raises(ValueError, match=message):
        parse_variants(text.split(","), "paper")


def test_the_hash_follows_the_parameters_and_not_the_spelling():
    first, second = parse_variants(["nlem:bandwidth=5:auto"], "paper") + parse_variants(
        ["nlem:bandwidth=5"], "awgn"
    )
    assert first.hash == second.hash
    assert first.hash != parse_variants(["nlem:auto"], "paper")[0].hash
    assert isinstance(first, Variant)


def test_few_images_are_told_and_nothing_is_marked_alike():
    nlem, auto = parse_variants(["nlem", "nlem:auto"], "paper")
    for n_images in (5, 6):
        items, rows = make_rows(
            {
                "noisy": ("noisy", [5.0] * n_images),
                "nlem": (nlem.hash, list(range(10, 10 + n_images))),
                "nlem:auto": (auto.hash, list(range(12, 12 + n_images))),
            }
        )
        found = summarise_case(items, CASE, [nlem, auto], rows)
        (p,) = {row["wilcoxon"]["p_holm"] for row in found["comparisons"] if row["measure"] == "snr"}
        assert (p < 0.05) == (n_images >= statistics.images_needed(1))
        told = f"{n_images} images are too few for the test: with 1 pair of methods" in tables.markdown(
            found, [nlem, auto]
        )
        assert told == (n_images == 5)
        assert tables.best_methods(found, "snr") == ("nlem:auto", set())
