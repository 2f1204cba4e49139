"""What a release needs agrees with itself: versions, citation, recipe, workflows, the paper's references."""

import json
import re
import tomllib

import pytest
from user_pages import ROOT

import vnlem

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


@pytest.mark.parametrize(
    ("file", "pattern"),
    [
        ("CITATION.cff", r"^version: (.+)$"),
        ("conda/meta.yaml", r'set version = "(.+)"'),
        ("docs/citing.md", r"version = \{(.+)\}"),
    ],
)
def test_every_file_names_the_version(file, pattern):
    assert re.search(pattern, (ROOT / file).read_text(), re.MULTILINE)[1] == vnlem.__version__


def test_the_recipe_needs_what_the_package_needs():
    recipe = (ROOT / "conda" / "meta.yaml").read_text()
    for requirement in PROJECT["dependencies"]:
        name, least = requirement.split(">=")
        assert f"- {name} >={least}\n" in recipe


def test_the_python_versions_are_those_of_the_workflow():
    workflow = (ROOT / ".github" / "workflows" / "tests.yml").read_text()
    tested = json.loads(re.search(r"python: (\[.+\])", workflow)[1])
    named = [found[1] for name in PROJECT["classifiers"] if (found := re.search(r":: (3\.\d+)$", name))]
    assert tested == named
    assert PROJECT["requires-python"] == f">={tested[0]}"


def test_workflows_call_targets_that_exist():
    makefile = (ROOT / "Makefile").read_text()
    for workflow in (ROOT / ".github" / "workflows").glob("*.yml"):
        for target in re.findall(r"run: make ([\w-]+)", workflow.read_text()):
            assert re.search(rf"^{target}:", makefile, re.MULTILINE), (workflow.name, target)


def test_the_paper_cites_what_its_bibliography_holds():
    text = (ROOT / "paper" / "paper.md").read_text()
    entries = set(re.findall(r"^@\w+\{(\w+),", (ROOT / "paper" / "paper.bib").read_text(), re.MULTILINE))
    assert set(re.findall(r"@(\w+)", text)) == entries


def test_the_deposit_is_valid_json():
    assert json.loads((ROOT / ".zenodo.json").read_text())["license"] == PROJECT["license"]


def test_dependencies_have_no_upper_caps():
    extras = PROJECT["optional-dependencies"].values()
    everything = [*PROJECT["dependencies"], *(name for extra in extras for name in extra)]
    assert [name for name in everything if "<" in name or "==" in name.partition(";")[0]] == []
