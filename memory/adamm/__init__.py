"""AdaMM's memory: attribute observations, induced schemas as tables, a hierarchy of events, episodes and topics, six tools.

In reading order: ``model`` (the data model), ``settings``, ``build`` (the whole construction), ``extraction``, ``names``,
``induction``, ``tables``, ``hierarchy``, ``content`` (on disk), ``database`` (queries), ``tools``. An *AdaMM episode* is a level of
the hierarchy; HiVe-Mem's *memory episode* (`memory.bank`) is another unit.
"""
