"""The tasks that models are asked to do: inputs, rendered messages and reply of each.

Each task is a frozen ``…Inputs`` dataclass, a function that renders it to a `models.requests.Request` (prompt texts are
the files in ``models/prompts``), and, where the reply is JSON, a function that checks and parses it. Modules: ``base``
(what all share), ``hive`` and ``adamm`` (building), ``planning``, ``answer``, ``judge``.
"""
