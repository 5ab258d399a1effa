"""HiVe-Mem's steps. Building: ``episodes``, ``asking``, ``anchors``, ``views``, ``affinity``. Reading: ``retrieval``, ``recall``."""
