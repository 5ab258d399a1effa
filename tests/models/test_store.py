from pathlib import Path

from models.store import ContentStore


def test_values_survive_reopening_and_keep_their_namespace(tmp_path: Path) -> None:
    store = ContentStore(tmp_path / "deep" / "store.sqlite")
    store.put("a", {"k": b"1", "j": b"\x00\xff"})
    store.put("b", {"k": b"2"})
    store.close()
    again = ContentStore(tmp_path / "deep" / "store.sqlite")
    assert again.get("a", ["k", "j", "absent"]) == {"k": b"1", "j": b"\x00\xff"}
    assert again.get("b", ["k"]) == {"k": b"2"}


def test_first_value_of_a_key_stays() -> None:
    store = ContentStore(None)
    store.put("a", {"k": b"1"})
    store.put("a", {"k": b"2"})
    assert store.get("a", ["k"]) == {"k": b"1"}


def test_more_keys_than_one_query_takes() -> None:
    store = ContentStore(None)
    values = {f"k{number}": str(number).encode() for number in range(1234)}
    store.put("a", values)
    assert store.get("a", values) == values
    assert store.get("a", []) == {}
