"""`Qwen3VL`: a Qwen3-VL model on this machine, through transformers."""

import json
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from models.errors import BackendError
from models.qwen3_vl.chat import Chat
from models.qwen3_vl.decoding import ReplyRules
from models.qwen3_vl.grammar import Grammar, TokenBytes
from models.requests import Reply, Request, TokenCounter, Usage
from models.weights import PretrainedSettings, Weights, need

_RULES = 1
"""Raise it when a change of this package changes replies, so that stored ones are not taken for the new ones."""


@dataclass(frozen=True)
class Qwen3VLSettings(PretrainedSettings):
    """``batch_tokens``: prompt tokens of a batch, padding included, at most; it bounds memory (a longer request goes alone)."""

    batch_tokens: int


class Qwen3VL:
    """A `models.requests.Backend` for every task.

    Decoding is greedy, whatever the folder's ``generation_config.json`` says of sampling and penalties. Requests are
    answered in batches of similar length, padded on the left; padding is masked, so a reply depends on its batch only
    through the rounding of sums: where two tokens are level to the last digits, another batch may choose the other one.
    In float32 that is rare (none of 60 replies of an untrained model differed between batches of 1, 3, 8 and 16), in
    bfloat16 it is common (more than half did). With ``batch_size`` 1 nothing depends on what else is asked.

    The weights are read at the first request, so a run whose every call is in the cache never loads them.
    """

    def __init__(self, settings: Qwen3VLSettings) -> None:
        """Find the model; reads its files once to name it.

        Raises:
            WeightsError: there is no such model on this machine, or it is not a Qwen3-VL.
            DependencyMissing: a package is not installed; the message holds the pip command.
        """
        need("torchvision", "transformers", "qwen_vl_utils", "outlines_core")
        self._settings = settings
        self._weights = Weights(settings, model_type="qwen3_vl")
        self._chat = Chat(self._weights)
        self._grammars: dict[str, Grammar] = {}
        self._lock = threading.Lock()

    @cached_property
    def model_id(self) -> str:
        """Kind, content hash, number format, and the version of our own decoding rules."""
        return f"{self._weights.identity()}-rules{_RULES}"

    @property
    def counter(self) -> TokenCounter:
        """Text by the model's tokenizer, pictures by its smart-resize rule."""
        return self._chat

    def stream(self, requests: Sequence[Request]) -> Iterator[tuple[int, Reply]]:
        """Answer in batches; replies come batch by batch, the shortest requests first.

        Raises:
            BackendError: a request that the model cannot take, named before anything is asked; or the device has not
                enough memory.
            WeightsError: the weights cannot be loaded.
        """
        lengths = [self._estimated_tokens(request) for request in requests]
        self._check(requests, lengths)
        for positions in self._batches(requests, lengths):
            with self._lock:  # one batch at a time on the device; a tokenizer is not safe to share between threads
                replies = self._answer([requests[position] for position in positions])
            yield from zip(positions, replies, strict=True)

    def _check(self, requests: Sequence[Request], lengths: Sequence[int]) -> None:
        limit = self._weights.config.get_text_config().max_position_embeddings
        problems = []
        for request, length in zip(requests, lengths, strict=True):
            if request.decoding.temperature != 0:
                problems.append(f"{request.task}: temperature {request.decoding.temperature}, but decoding is greedy; set it to 0")
            if length + request.decoding.max_output_tokens > limit:
                problems.append(
                    f"{request.task}: about {length} prompt tokens and {request.decoding.max_output_tokens} of the reply, "
                    f"but the model reads {limit}; show less, or smaller pictures"
                )
        if problems:
            listed = "\n".join(f"  - {problem}" for problem in dict.fromkeys(problems))
            raise BackendError(f"{self.model_id} cannot answer {len(problems)} of {len(requests)} requests:\n{listed}")

    def _estimated_tokens(self, request: Request) -> int:
        """Prompt tokens by the token rules and about 8 of the chat template for each message, without decoding a picture."""
        texts, images = self._chat.text_tokens(request.messages), self._chat.image_tokens(request.messages)
        return texts + images + 8 * len(request.messages) + 2 * len(request.pictures)

    def _batches(self, requests: Sequence[Request], lengths: Sequence[int]) -> Iterator[list[int]]:
        """Positions of requests with one limit and similar lengths, in the order of (limit, length, position)."""
        limits = [request.decoding.max_output_tokens for request in requests]
        batch: list[int] = []
        for position in sorted(range(len(requests)), key=lambda position: (limits[position], lengths[position], position)):
            is_full = len(batch) == self._settings.batch_size or (len(batch) + 1) * lengths[position] > self._settings.batch_tokens
            if batch and (is_full or limits[position] != limits[batch[0]]):
                yield batch
                batch = []
            batch.append(position)
        if batch:
            yield batch

    def _answer(self, batch: Sequence[Request]) -> list[Reply]:
        import torch
        from transformers import GenerationConfig

        started = time.perf_counter()
        inputs = self._chat.inputs([request.messages for request in batch]).to(self._settings.device)
        limit = batch[0].decoding.max_output_tokens
        prompt_length = inputs["input_ids"].shape[1]
        rules = ReplyRules(
            [self._grammar(request.schema) for request in batch],
            tokens=self._token_bytes,
            ends=self._ends,
            prompt_length=prompt_length,
            max_output_tokens=limit,
        )
        greedy = GenerationConfig(do_sample=False, max_new_tokens=limit, eos_token_id=self._ends, pad_token_id=self._ends[0])  # type: ignore[no-untyped-call]
        try:
            with torch.inference_mode():
                written = self._model.generate(**inputs, generation_config=greedy, logits_processor=[rules])[:, prompt_length:].tolist()
        except torch.OutOfMemoryError as error:
            raise BackendError(
                f"{self._settings.device} has not enough memory for {len(batch)} requests of {prompt_length} tokens: "
                f"lower batch_tokens ({self._settings.batch_tokens}) or batch_size ({self._settings.batch_size})"
            ) from error
        except RuntimeError as error:
            raise BackendError(
                f"{self.model_id} failed on {self._settings.device} ({error}); run again, what was answered is kept"
            ) from error
        seconds = time.perf_counter() - started
        first = None if rules.first_token_time is None else rules.first_token_time - started
        n_prompt = inputs["attention_mask"].sum(dim=1).tolist()
        replies = []
        for request, n_input, tokens in zip(batch, n_prompt, written, strict=True):
            n_text = next((n for n, token in enumerate(tokens) if token in self._ends), len(tokens))
            text = self._chat.tokenizer.decode(tokens[:n_text], clean_up_tokenization_spaces=False).strip()
            usage = Usage(n_input, min(n_text + 1, len(tokens)), self._chat.image_tokens(request.messages))  # the end token counts
            replies.append(Reply(request.key(self.model_id), text, usage, seconds, first_token_seconds=first))
        return replies

    def _grammar(self, schema: Mapping[str, Any] | None) -> Grammar | None:
        if schema is None:
            return None
        key = json.dumps(schema)  # unsorted: the order of properties is that of the reply
        if key not in self._grammars:
            self._grammars[key] = Grammar(schema, self._token_bytes)
        return self._grammars[key]

    @cached_property
    def _model(self) -> Any:
        from transformers import GenerationConfig, Qwen3VLForConditionalGeneration

        model = self._weights.load(Qwen3VLForConditionalGeneration)
        # What a call's own configuration leaves open would be filled from the folder's: a published repetition penalty, say.
        model.generation_config = GenerationConfig()  # type: ignore[no-untyped-call]
        return model

    @cached_property
    def _ends(self) -> list[int]:
        """The tokens that end a reply: the folder's, and the tokenizer's own end."""
        published = self._weights.read_json("generation_config.json").get("eos_token_id", [])
        return sorted({*([published] if isinstance(published, int) else published), self._chat.tokenizer.eos_token_id})

    @cached_property
    def _token_bytes(self) -> TokenBytes:
        return TokenBytes(self._chat.tokenizer, size=self._weights.config.get_text_config().vocab_size)
