import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from models.cache.calls import Call, CallCache
from models.cache.contents import Filter, batches
from models.cache.parquet import SCHEMA, export_calls, import_calls
from models.errors import CacheError
from models.requests import Request, content_key
from tests.models.calls import call


def cache(folder: Path, name: str) -> CallCache:
    return CallCache(folder / f"{name}.sqlite", mode="read_write")


def contents(of: CallCache) -> list[Call]:
    return [one for some in batches(of, only=Filter()) for one in some]


def test_calls_come_back_from_parquet(tmp_path: Path) -> None:
    source, target = cache(tmp_path, "source"), cache(tmp_path, "target")
    timed = replace(call("timed"), first_token_seconds=0.2)
    source.put([*(call(f"é {number}") for number in range(1100)), timed, call("other", model_id="m2")], replace=False)
    target.put([call("é 5", reply="kept")], replace=False)
    assert export_calls(source, tmp_path / "new" / "c.parquet", only=Filter()) == 1102
    assert import_calls(target, tmp_path / "new" / "c.parquet") == (1102, 1101)
    assert contents(target) == [one if one.reply != "é 5" else replace(one, reply="kept") for one in contents(source)]
    assert export_calls(source, tmp_path / "m2.parquet", only=Filter(model_id="m2")) == 1
    assert sorted(path.name for path in (tmp_path / "new").iterdir()) == ["c.parquet"]


def test_a_reply_that_may_break_its_schema_comes_back_too(tmp_path: Path) -> None:
    source, target = cache(tmp_path, "source"), cache(tmp_path, "target")
    request = Request("plan", "plan", (), None, schema={"type": "object"}, lenient=True)
    source.put([asked(request.rendered("echo-1"), "no plan at all")], replace=False)
    export_calls(source, tmp_path / "c.parquet", only=Filter())
    assert import_calls(target, tmp_path / "c.parquet") == (1, 1)
    assert contents(target) == contents(source)


def test_an_empty_cache_is_an_empty_file(tmp_path: Path) -> None:
    assert export_calls(cache(tmp_path, "source"), tmp_path / "c.parquet", only=Filter()) == 0
    assert import_calls(cache(tmp_path, "target"), tmp_path / "c.parquet") == (0, 0)


def asked(content: Mapping[str, Any] | str, reply: str = "x") -> Call:
    """A call whose key is right for whatever the request is."""
    rendered = content if isinstance(content, str) else json.dumps(content)
    return replace(call("x"), request=rendered, key=content_key(rendered), reply=reply)


def rendered_with(schema: Any) -> dict[str, Any]:
    return {"model": "echo-1", "messages": [], "decoding": {}, "schema": schema}


HOSTILE = {
    "key": (replace(call("x"), key="0" * 64), "key='0{64}' is not the SHA-256 of the request"),
    "reply of another request": (replace(call("x"), request=call("y").request), "key=.* is not the SHA-256 of the request"),
    "model": (replace(call("x"), model_id="m2"), "request is to 'echo-1', model_id='m2'"),
    "phase": (replace(call("x"), phase="spend"), "phase='spend' must be one of build, plan, answer, judge"),
    "task": (replace(call("x"), task="[red]\n"), "task=.* must be up to 64 small letters"),
    "negative tokens": (replace(call("x"), output_tokens=-1), "output_tokens=-1 must be from 0"),
    "huge tokens": (replace(call("x"), input_tokens=2**40), "input_tokens=1099511627776 must be from 0 to 2147483647"),
    "image tokens": (replace(call("x"), image_tokens=8), "image_tokens=8 must be part of input_tokens=7"),
    "seconds": (replace(call("x"), seconds=float("nan")), "seconds=nan must be a finite number"),
    "first token": (replace(call("x"), first_token_seconds=float("inf")), "first_token_seconds=inf must be a finite"),
    "future": (replace(call("x"), created=1e12), "created=.* is not in the past"),
    "NUL": (replace(call("x"), reply="a\0b"), "reply is over .* characters or holds NUL"),
    "no JSON": (asked("{"), "request is not JSON"),
    "deep": (asked("[" * 100_000), "request is not JSON"),
    "no request": (asked({"model": "echo-1"}), "request is not an object of model, messages, decoding and schema"),
    "breaks schema": (asked(rendered_with({"type": "object"}), "[]"), r"reply breaks the schema at \$"),
    "half lenient": (asked({**rendered_with({"type": "object"}), "lenient": "yes"}, "[]"), r"reply breaks the schema at \$"),
    "no schema": (asked(rendered_with({"type": 7})), "request has a schema that is none"),
    "far schema": (asked(rendered_with({"$ref": "http://127.0.0.1:9/x"}), "{}"), r"reply cannot be checked .*127\.0\.0\.1:9"),
    "endless schema": (asked(rendered_with({"$ref": "#"}), "{}"), "reply cannot be checked .*recursion"),
    "no pattern": (asked(rendered_with({"pattern": "("}), '"x"'), "request has a schema that is none"),
}


@pytest.mark.parametrize(("row", "problem"), HOSTILE.values(), ids=HOSTILE)
def test_a_hostile_row_is_named_and_nothing_is_stored(tmp_path: Path, row: Call, problem: str) -> None:
    good = [call(f"good {number}") for number in range(700)]
    pq.write_table(pa.Table.from_pylist([vars(one) for one in [*good, row]], schema=SCHEMA), tmp_path / "c.parquet")
    target = cache(tmp_path, "target")
    with pytest.raises(CacheError, match=f"1 of 701 rows cannot be imported, so none is(.|\n)*row 700: {problem}"):
        import_calls(target, tmp_path / "c.parquet")
    assert contents(target) == []


def test_all_problems_are_told_up_to_twenty(tmp_path: Path) -> None:
    rows = [vars(replace(call(f"x{number}"), output_tokens=-1)) for number in range(30)]
    pq.write_table(pa.Table.from_pylist(rows, schema=SCHEMA), tmp_path / "c.parquet")
    with pytest.raises(CacheError) as error:
        import_calls(cache(tmp_path, "target"), tmp_path / "c.parquet")
    assert "30 of 30 rows" in str(error.value)
    assert str(error.value).count("output_tokens=-1") == 20


def test_another_file_is_refused(tmp_path: Path) -> None:
    target = cache(tmp_path, "target")
    pq.write_table(pa.table({"key": [1], "extra": ["x"]}), tmp_path / "other.parquet")
    with pytest.raises(CacheError, match=r"is no export of a call cache .*extra: string for nothing, .*key: int64 for string"):
        import_calls(target, tmp_path / "other.parquet")
    (tmp_path / "text.parquet").write_text("PAR1 no, PAR1")
    with pytest.raises(CacheError, match=r"text\.parquet cannot be read .*check the path, and that it is a Parquet file"):
        import_calls(target, tmp_path / "text.parquet")
    with pytest.raises(CacheError, match=r"none\.parquet cannot be read"):
        import_calls(target, tmp_path / "none.parquet")


def test_a_file_cut_short_is_refused(tmp_path: Path) -> None:
    source = cache(tmp_path, "source")
    source.put([call(f"x{number}") for number in range(100)], replace=False)
    export_calls(source, tmp_path / "c.parquet", only=Filter())
    content = (tmp_path / "c.parquet").read_bytes()
    damaged = bytearray(content)
    damaged[200:400] = b"\xff" * 200
    for number, wrong in enumerate((content[: len(content) // 2], bytes(damaged))):
        (tmp_path / f"{number}.parquet").write_bytes(wrong)
        with pytest.raises(CacheError, match="cannot be"):
            import_calls(cache(tmp_path, "target"), tmp_path / f"{number}.parquet")


def test_a_file_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    (tmp_path / "c.parquet").mkdir()
    with pytest.raises(CacheError, match="cannot be written"):
        export_calls(cache(tmp_path, "source"), tmp_path / "c.parquet", only=Filter())
    assert not [path for path in tmp_path.iterdir() if path.name.startswith(".")]
