"""AdaMM's memory: attribute observations, induced schemas as tables, a hierarchy of events, episodes and topics, six tools.

In reading order: ``model`` (the data model), ``build`` (the whole construction), ``extraction``, ``induction``, ``values``
(typed values), ``tables``, ``hierarchy``, ``database`` (on disk), ``tools``. An *AdaMM episode* is a level of the hierarchy;
HiVe-Mem's *memory episode* (`memory.bank`) is another unit.
"""
