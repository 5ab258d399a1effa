"""The evidence selector: its policy, training, checkpoints, export and inference.

Reading order: ``bernoulli`` (the action distribution), ``network`` (Eq. 5), ``selector`` (the Stable-Baselines3 policy), ``training``
(PPO), ``callbacks`` and ``tracking`` (what happens between rollouts), ``checkpoint`` (exact resume), ``artefact`` (the exported
document), ``export`` and ``inference``. Nothing here knows questions, memories or models: only spaces and arrays.
"""
