"""The six access tools of AdaMM (Table 4) over an opened memory.

In reading order: ``arguments`` (typed arguments and their JSON schemas), ``result``, ``errors``, ``columns`` (names resolved),
``expressions`` (the column expressions' grammar), ``conditions`` (column filters), ``selection`` (the queries), ``computing`` (the
operators of Compute), ``rendering`` (rows and results as JSON and text), ``analytic`` (Lookup, Filter, Compute, Rank), ``retrieval``
(SemanticMatch, EventLocate), ``toolbox`` (a call from a model, checked and run).
"""
