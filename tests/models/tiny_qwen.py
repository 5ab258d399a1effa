"""Tiny randomly initialised models in the layout of the real ones, saved to folders for tests.

The tokenizers are trained on the spot, on the project's own prompts; processors and model classes are the real ones. Nothing is
downloaded, and equal seeds give equal weights.
"""

import json
import string
from pathlib import Path
from typing import Any

import torch
from tokenizers import Tokenizer, models, pre_tokenizers, trainers
from transformers import (
    GemmaTokenizer,
    GenerationConfig,
    Qwen2Tokenizer,
    Qwen2VLImageProcessor,
    Qwen3VLConfig,
    Qwen3VLForConditionalGeneration,
    Qwen3VLProcessor,
    Qwen3VLVideoProcessor,
    SiglipConfig,
    SiglipImageProcessor,
    SiglipModel,
    SiglipProcessor,
)

from models.tasks.base import PROMPTS

PATCH = 16
SPECIAL_TOKENS = (
    "<|endoftext|>",
    "<|im_start|>",
    "<|im_end|>",
    "<|vision_start|>",
    "<|vision_end|>",
    "<|image_pad|>",
    "<|video_pad|>",
)
# ChatML with pictures in place, as Qwen3-VL is asked.
CHAT_TEMPLATE = (
    "{%- for message in messages -%}"
    "{{ '<|im_start|>' + message.role + '\\n' }}"
    "{%- if message.content is string -%}{{ message.content }}{%- else -%}"
    "{%- for part in message.content -%}"
    "{%- if part.type == 'image' -%}{{ '<|vision_start|><|image_pad|><|vision_end|>' }}"
    "{%- else -%}{{ part.text }}{%- endif -%}"
    "{%- endfor -%}{%- endif -%}"
    "{{ '<|im_end|>\\n' }}"
    "{%- endfor -%}"
    "{%- if add_generation_prompt -%}{{ '<|im_start|>assistant\\n' }}{%- endif -%}"
)


def build_tiny_qwen3_vl(folder: Path, *, seed: int = 0, dimension: int = 64) -> Path:
    """Save a Qwen3-VL of about half a million parameters to ``folder``; Qwen3-VL-Embedding is published in the same layout."""
    processor = _qwen_processor()
    tokenizer = processor.tokenizer
    torch.manual_seed(seed)
    model = Qwen3VLForConditionalGeneration(_qwen_config(tokenizer, dimension))
    _spread(model, 6.0)
    ends = [tokenizer.convert_tokens_to_ids(token) for token in ("<|im_end|>", "<|endoftext|>")]
    # As published: sampling settings that greedy decoding must not obey.
    model.generation_config = GenerationConfig(
        eos_token_id=ends, pad_token_id=ends[1], do_sample=True, temperature=0.7, top_k=20, top_p=0.8, repetition_penalty=1.3
    )
    model.save_pretrained(folder)
    processor.save_pretrained(folder)
    return folder


def build_tiny_siglip2(folder: Path, *, seed: int = 0) -> Path:
    """Save a SigLIP2 with the fixed-resolution layout (text and image branch, 32-d, 64 × 64 pixels) to ``folder``."""
    tokenizer = _siglip_tokenizer()
    tower = {"hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2, "num_attention_heads": 2}
    config = SiglipConfig(
        text_config=tower | _SIGLIP_TOKENS | {"vocab_size": len(tokenizer), "max_position_embeddings": 64, "projection_size": 32},
        vision_config=tower | {"image_size": 64, "patch_size": PATCH},
    )
    torch.manual_seed(seed)
    model = SiglipModel(config)
    _spread(model, 2.0)
    model.save_pretrained(folder)
    SiglipProcessor(SiglipImageProcessor(size={"height": 64, "width": 64}), tokenizer).save_pretrained(folder)
    return folder


def _spread(model: torch.nn.Module, factor: float) -> None:
    """Enlarge the weight matrices: as initialised, so small a model says much the same whatever it is asked."""
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if parameter.dim() >= 2 and "embed" not in name:
                parameter.mul_(factor)


def _qwen_config(tokenizer: Any, dimension: int) -> Qwen3VLConfig:
    special = {name: tokenizer.convert_tokens_to_ids(f"<|{token}|>") for name, token in _TOKEN_FIELDS.items()}
    text = {
        "vocab_size": len(tokenizer),
        "hidden_size": dimension,
        "intermediate_size": 128,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "head_dim": 16,
        "max_position_embeddings": 32768,
        "rope_parameters": {"rope_type": "default", "rope_theta": 10000.0, "mrope_section": [4, 2, 2], "mrope_interleaved": True},
    }
    vision = {
        "depth": 2,
        "hidden_size": 64,
        "intermediate_size": 128,
        "num_heads": 4,
        "patch_size": PATCH,
        "spatial_merge_size": 2,
        "temporal_patch_size": 2,
        "out_hidden_size": dimension,
        "num_position_embeddings": 256,
        "deepstack_visual_indexes": [0],
    }
    return Qwen3VLConfig(text_config=text, vision_config=vision, tie_word_embeddings=True, **special)


_TOKEN_FIELDS = {
    "image_token_id": "image_pad",
    "video_token_id": "video_pad",
    "vision_start_token_id": "vision_start",
    "vision_end_token_id": "vision_end",
}


def _qwen_processor() -> Qwen3VLProcessor:
    trained = Tokenizer(models.BPE())
    trained.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    trainer = trainers.BpeTrainer(vocab_size=1024, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False)
    trained.train_from_iterator(_texts(), trainer)
    learnt = json.loads(trained.to_str())["model"]
    tokenizer = Qwen2Tokenizer(
        vocab=learnt["vocab"],
        merges=[tuple(pair) for pair in learnt["merges"]],
        additional_special_tokens=list(SPECIAL_TOKENS[1:]),
        eos_token="<|im_end|>",
    )
    size = {"shortest_edge": 65536, "longest_edge": 16777216}
    return Qwen3VLProcessor(
        image_processor=Qwen2VLImageProcessor(patch_size=PATCH, merge_size=2, temporal_patch_size=2, size=size, **_MEANS),
        tokenizer=tokenizer,
        video_processor=Qwen3VLVideoProcessor(patch_size=PATCH, merge_size=2, temporal_patch_size=2),
        chat_template=CHAT_TEMPLATE,
    )


_SIGLIP_TOKENS = {"pad_token_id": 0, "eos_token_id": 1, "bos_token_id": 2}
_MEANS: dict[str, Any] = {"image_mean": [0.5, 0.5, 0.5], "image_std": [0.5, 0.5, 0.5]}


def _siglip_tokenizer() -> GemmaTokenizer:
    """A tokenizer of the published one's class, which does not lower-case by itself."""
    trained = Tokenizer(models.BPE(unk_token="<unk>"))
    trained.pre_tokenizer = pre_tokenizers.Metaspace()
    specials = ["<pad>", "<eos>", "<bos>", "<unk>", "<mask>"]
    alphabet = [*string.ascii_lowercase, *string.digits, *string.punctuation]
    trainer = trainers.BpeTrainer(vocab_size=1024, special_tokens=specials, initial_alphabet=alphabet, show_progress=False)
    trained.train_from_iterator(_texts(), trainer)
    learnt = json.loads(trained.to_str())["model"]
    return GemmaTokenizer(vocab=learnt["vocab"], merges=[tuple(pair) for pair in learnt["merges"]])


def _texts() -> list[str]:
    return [path.read_text(encoding="utf-8") for path in sorted(PROMPTS.glob("*.md"))]
