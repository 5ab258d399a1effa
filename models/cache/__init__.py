"""The call cache: ``calls`` (the table, look-up and storing), ``contents`` (what it holds), ``parquet`` (in and out), commands."""
