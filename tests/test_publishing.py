"""What is needed to publish: workflows that their schema accepts, one version everywhere."""

import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import vnlem

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
pytestmark = pytest.mark.skipif(
    not (ROOT / ".github").is_dir(), reason="a source distribution has no workflows"
)
SCHEMAS = {
    "vendor.github-workflows": ".github/workflows",
    "vendor.github-issue-forms": ".github/ISSUE_TEMPLATE",
}


@pytest.mark.slow
@pytest.mark.parametrize("schema", SCHEMAS)
def test_workflows_and_forms_follow_their_schema(schema):
    pytest.importorskip("check_jsonschema")
    files = [str(f) for f in (ROOT / SCHEMAS[schema]).glob("*.yml") if f.name != "config.yml"]
    assert files
    command = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", schema, *files]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def test_one_version_stands_everywhere():
    version = re.escape(vnlem.__version__)
    for name, line in {
        "CITATION.cff": f"version: {version}",
        "conda/recipe.yaml": f'  version: "{version}"',
        "docs/citing.md": rf"  version = \{{{version}\}},",
    }.items():
        assert re.search(f"^{line}$", (ROOT / name).read_text(), re.MULTILINE), name


def test_every_version_of_the_site_is_offered_by_its_switcher(tmp_path):
    from publish_docs import publish

    built, site = tmp_path / "built", tmp_path / "site"
    (built / "_static").mkdir(parents=True)
    for version in ("dev", "0.10.0", "0.9.0", "dev"):
        (built / "index.html").write_text(version)
        publish(built, site, version, "https://example.org/vnlem/")
    offered = json.loads((site / "versions.json").read_text())
    assert [entry["version"] for entry in offered] == ["dev", "0.10.0", "0.9.0"]
    assert [entry["version"] for entry in offered if entry["preferred"]] == ["0.10.0"]
    for entry in offered:
        assert entry["url"] == f"https://example.org/vnlem/{entry['version']}/"
        assert (site / entry["version"] / "index.html").read_text() == entry["version"]
    assert "url=0.10.0/" in (site / "index.html").read_text()
    with pytest.raises(SystemExit, match=r"no index\.html"):
        publish(site / "0.9.0" / "_static", site, "1.0", "")


def test_commands_of_workflows_exist():
    made = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    for workflow in (ROOT / ".github" / "workflows").glob("*.yml"):
        text = workflow.read_text()
        for target in re.findall(r"make ([a-z-]+)", text):
            assert target in made, f"{workflow.name}: make {target}"
        for test in re.findall(r"(?:tests|tools)/\w+\.py", text):
            assert (ROOT / test).is_file(), f"{workflow.name}: {test}"


def test_the_archive_knows_title_and_licence():
    about = json.loads((ROOT / ".zenodo.json").read_text())
    assert about["license"] == "BSD-3-Clause"
    assert about["title"].startswith("vnlem")


def test_the_recipe_needs_what_the_package_needs():
    recipe = (ROOT / "conda" / "recipe.yaml").read_text()
    named = re.findall(r"    - (.+)\n", recipe[recipe.index("  run:") : recipe.index("tests:")])
    wanted = [f"python{PROJECT['requires-python']}", *PROJECT["dependencies"]]
    assert [name.replace(" ", "") for name in named] == wanted


def test_the_python_versions_are_those_of_the_workflow():
    workflow = (ROOT / ".github" / "workflows" / "tests.yml").read_text()
    tested = json.loads(re.search(r"python: (\[.+\])", workflow)[1])
    named = [found[1] for name in PROJECT["classifiers"] if (found := re.search(r":: (3\.\d+)$", name))]
    assert tested == named
    assert PROJECT["requires-python"] == f">={tested[0]}"


def test_the_paper_cites_what_its_bibliography_holds():
    text = (ROOT / "paper" / "paper.md").read_text()
    entries = set(re.findall(r"^@\w+\{(\w+),", (ROOT / "paper" / "paper.bib").read_text(), re.MULTILINE))
    assert set(re.findall(r"@(\w+)", text)) == entries


def test_dependencies_have_no_upper_caps():
    extras = PROJECT["optional-dependencies"].values()
    everything = [*PROJECT["dependencies"], *(name for extra in extras for name in extra)]
    assert [name for name in everything if "<" in name or "==" in name.partition(";")[0]] == []
