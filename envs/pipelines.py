"""Questions made ready for planning: the context and the tools of each question's memory, in AdaMM's pipeline or the joint one."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from data.history import Question
from data.images import Picture, load_picture
from envs.errors import SettingsError
from envs.planned import PlannedQuestion
from envs.questions import query_vectors
from envs.workbench import Workbench
from memory.adamm.database import DATABASE, TableStore
from memory.adamm.model import AdaMMMemory
from memory.adamm.similarity import FusionWeights
from memory.adamm.tools.retrieval import RetrievalTools
from memory.adamm.tools.toolbox import ToolBox
from memory.forms import forms_named
from models.tasks.answer import answer_formats
from models.tasks.base import SeenImage
from planners.composers import Composer
from planners.context import ContextIndex
from planners.execution import Subject
from planners.joint import EpisodeComposer, JointRetrieval

QUERY_SECONDS = 10.0


@dataclass(frozen=True, kw_only=True)
class Pipeline:
    """How questions are planned for; every field but the first is an ablation of the paper's Figure 4, or a number of its Table 5.

    ``context`` is ``retrieved`` (k_tables and k_episodes best entries) or ``all`` (every entry, at most ``max_entries`` of the best).
    """

    name: Literal["adamm", "joint"]
    analytic: bool = True
    retrieval: bool = True
    context: Literal["retrieved", "all"] = "retrieved"
    progressive: bool = True
    k_tables: int = 5
    k_episodes: int = 5
    max_entries: int = 200
    query_fusion: Literal["fused", "text_only"] = "fused"


def prepare_planned(
    workbench: Workbench, questions: Sequence[Question], pipeline: Pipeline, *, composer: Composer | None = None
) -> list[PlannedQuestion]:
    """Rank the context and open the tools of every question.

    Args:
        workbench: with AdaMM's memories, for ``joint`` with HiVe-Mem's banks too.
        questions: of its dataset.
        pipeline: what is planned with.
        composer: chooses the evidence forms of memory episodes (``joint`` only).

    Raises:
        SettingsError: the workbench lacks a memory that the pipeline reads.
    """
    missing = [
        name
        for name, there in (("AdaMM's", workbench.adamm), ("HiVe-Mem's", workbench.banks if pipeline.name == "joint" else True))
        if not there
    ]
    if missing:
        raise SettingsError(f"pipeline {pipeline.name} reads {' and '.join(missing)} memory, which is not built: choose memory=both")
    if pipeline.name == "joint" and composer is None:
        raise ValueError("the joint pipeline needs a composer")
    opened = {history_id: _OpenedMemory(workbench, memory, pipeline) for history_id, memory in workbench.adamm.items()}
    pictures = _pictures(workbench)
    instructions = answer_formats().get(workbench.settings.data.answer_format or "", {})
    k_tables, k_episodes = (pipeline.k_tables, pipeline.k_episodes) if pipeline.context == "retrieved" else (None, None)
    planned = []
    for question, query in zip(questions, query_vectors(questions, workbench.encoder), strict=True):
        memory = opened[question.history_id]
        context = memory.index.rank(
            question.retrieval_text,
            query,
            k_tables=k_tables,
            k_episodes=k_episodes,
            max_entries=None if pipeline.context == "retrieved" else pipeline.max_entries,
        )
        images = tuple(SeenImage("", None if image.path is None else load_picture(image.path), image.caption) for image in question.images)
        compose = None
        if composer is not None and pipeline.name == "joint":
            bank = workbench.banks[question.history_id]
            compose = EpisodeComposer(bank, composer, forms=forms_named(workbench.settings.memory.forms), query=np.asarray(query))
        planned.append(
            PlannedQuestion(
                question,
                Subject(question.text, images, context.shown, memory.tools, pipeline.progressive),
                instructions.get(question.category, ""),
                query,
                context,
                pictures[question.history_id],
                workbench.adamm[question.history_id].round_ids,
                compose,
            )
        )
    return planned


class _OpenedMemory:
    """The context index and the tools over one history's memory."""

    def __init__(self, workbench: Workbench, memory: AdaMMMemory, pipeline: Pipeline) -> None:
        settings = workbench.settings.memory.adamm_memory
        retrieval: RetrievalTools | JointRetrieval = RetrievalTools(
            memory,
            text_encoder=workbench.encoder,
            image_encoder=workbench.image_encoder,
            weights=FusionWeights(settings.text_weight, settings.visual_weight),
            query_fusion=pipeline.query_fusion,
        )
        joins = pipeline.name == "joint"
        if joins:
            bank = workbench.banks[memory.history_id]
            retrieval = JointRetrieval(bank, retrieval, encoder=workbench.encoder, expansion=workbench.settings.memory.expansion)
        self.index = ContextIndex(memory, analytic=pipeline.analytic, retrieval=pipeline.retrieval, whole_episodes=joins)
        store = TableStore(memory.folder / DATABASE, timeout_seconds=QUERY_SECONDS)
        self.tools = ToolBox(memory, tables=store, retrieval=retrieval if pipeline.retrieval else None)


def _pictures(workbench: Workbench) -> dict[str, dict[str, Picture]]:
    return {
        history.id: {image.id: load_picture(image.path) for image in history.images if image.path is not None}
        for history in workbench.dataset.histories
    }
