from pathlib import Path

import pytest

from models import prices
from models.errors import BackendError
from models.prices import PriceList
from models.requests import Usage

SHIPPED = Path(prices.__file__).with_name("prices_openai.yaml")


def price_file(folder: Path, text: str) -> Path:
    path = folder / "prices.yaml"
    path.write_text(text)
    return path


def test_tokens_are_priced_per_million() -> None:
    # gpt-4.1-mini: 0.40 in and 1.60 out; 2,000,000 in (images included) and 500,000 out are 0.80 + 0.80.
    assert PriceList.load(SHIPPED).usd("gpt-4.1-mini@1048576px", Usage(2_000_000, 500_000, 900_000)) == pytest.approx(1.60)


def test_a_snapshot_has_its_models_price_unless_it_has_its_own() -> None:
    usage = Usage(1_000_000, 0, 0)
    assert PriceList.load(SHIPPED).usd("gpt-4o-2024-11-20", usage) == pytest.approx(2.50)
    assert PriceList.load(SHIPPED).usd("gpt-4o-2024-05-13@1048576px,r2", usage) == pytest.approx(5.00)


def test_an_unknown_model_is_an_error_and_never_free() -> None:
    with pytest.raises(BackendError, match=r"no price for model 'gpt-9-mini' in .*prices_openai\.yaml; add it.*gpt-4o"):
        PriceList.load(SHIPPED).usd("gpt-9-mini@4096px", Usage(1, 1, 0))


def test_all_problems_of_a_file_are_told_at_once(tmp_path: Path) -> None:
    models = ("a: {input: -1, output: .nan}", "b: {input: 1}", "c: {input: true, output: 1}", "4: {}")
    text = "as_of: soon\nextra: 1\nusd_per_million_tokens:\n" + "".join(f"  {model}\n" for model in models)
    with pytest.raises(BackendError) as caught:
        PriceList.load(price_file(tmp_path, text))
    said = str(caught.value)
    assert all(
        problem in said
        for problem in ("as_of:", "extra:", "a.input=-1", "a.output=nan", "b: must have", "c.input=True", "4: a model's name")
    )


@pytest.mark.parametrize("text", ["", "[1, 2]", "as_of: 2026-01-01", "{", "\x00"])
def test_what_is_no_price_file_is_refused(tmp_path: Path, text: str) -> None:
    with pytest.raises(BackendError, match="price file"):
        PriceList.load(price_file(tmp_path, text))
