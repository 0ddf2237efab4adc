"""Where heavy work runs: in this process, or on the workers of an engine.

In reading order:

    engine          the interface of an engine, and one that makes all calls in this process
    choice          the engine that a user chose
    ray_engine      workers on a Ray cluster
    array_rows      how a worker gets rows of a large array
    shared_output   where workers on this machine write rows of a result
"""
