"""The environments, and everything that scores them.

Reading order: `settings`, `job`, `workbench`, `questions`, `answering`, `reward`, `selection`, `batched`, `vectorised`, `question_stream`,
`training`; for plans `pipelines`, `planned`, `planning`, `planning_batched`, `planning_training`, `planner_report`; `modes`, `metrics`,
`evaluation`.
Importing this package registers the Gymnasium ids.
"""

import gymnasium

gymnasium.register("EvidenceGym/EvidenceSelection-v0", entry_point="envs.workbench:make_selection_env")
gymnasium.register("EvidenceGym/ToolPlanning-v0", entry_point="envs.planning_training:make_planning_env")
