"""The embedded engine: a backend of rules and OCR for machines without a GPU or a server.

Reading order: `engine`; for building, `memorise` (`summary`), `caption`, `ground`, `extract` (`labelled_values`,
`measures`), `table`, `describe`; for judging, `judge`; for answers, `window` and `answer`, which reads the question
(`question`, `question_kinds`) and the evidence (`turns`, `layout`, `ocr`, `evidence`), ranks statements (`ranking`) and takes a
span (`spans`, `chunks`), an image (`images`, `pictures`, `identify`), a verdict (`verdicts`) or a result (`arithmetic`, `lists`,
`quantities`, `dates`). Words: `english`, `phrases`, `word_lists`.
"""
