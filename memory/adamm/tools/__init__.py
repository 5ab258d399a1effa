"""The six access tools of AdaMM (Table 4) over an opened memory.

In reading order: ``arguments`` (typed arguments and their JSON schemas), ``result``, ``errors``, ``expressions`` (the column
expressions' grammar), ``conditions`` (column filters), ``analytic`` (Lookup, Filter, Compute, Rank), ``retrieval``
(SemanticMatch, EventLocate), ``toolbox`` (a call from a model, checked and run).
"""
