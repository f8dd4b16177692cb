"""Which positional encodings the models of transformers have, from code that runs.

declared: what a default configuration says.      reachable: what the source can do.
measured: what a narrow random model does.        joined: each fact with its witness.
"""
