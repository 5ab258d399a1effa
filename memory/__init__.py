"""Memory banks: what is remembered of a history, how it is found again, and how it is shown.

In reading order: ``bank`` (the data model), ``forms`` (the evidence forms), ``settings``, ``asking`` (calls of the model), ``build`` (the
whole construction), ``hive`` (HiVe-Mem's steps), ``identity``, ``persistence``, ``duckdb_file`` and ``bank_tables`` (a bank on disk),
``index`` (similarity search), ``composition`` (from chosen forms to what is shown and counted), ``adamm`` (the other part of the memory:
tables, hierarchy, tools), ``errors``.
"""
