"""Coverage-guided fuzzing of everything that reads what others wrote: `python benchmarks/fuzz/run.py --help`.

    target.py                        what a target is: a parser, and the inputs to start from
    texts.py, tables.py, folders.py  the targets
    run.py                           fuzzes them by atheris, and keeps the counts in benchmarks/results/fuzz.json
    page.py                          what docs/reliability.md says of it

`tests/test_corpus.py` replays every input that once was a finding, from tests/corpus/TARGET/.
"""
