"""The environments, and everything that scores them.

Reading order: `settings`, `workbench`, `questions`, `answering`, `reward`, `selection`, `batched`, `question_stream`,
`metrics`, `evaluation`. Importing this package registers the Gymnasium ids.
"""

import gymnasium

gymnasium.register("EvidenceGym/EvidenceSelection-v0", entry_point="envs.workbench:make_selection_env")
