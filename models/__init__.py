"""Models behind one door. Reading order: `requests`, `tasks`, `door`, `store`, `tokens`, `encoders`, `embedded`."""
