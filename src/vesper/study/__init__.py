"""Studies: grids of settings, run on all cores and compared with the numbers that the paper prints.

In reading order:

    study             from a request to finished cells; resumes a study that was stopped
    parameter_grid    a study as a TOML declaration, and the cells that it plans
    presets           studies of the paper, with its published numbers
    sets              where data sets come from: folders of the user, or simulators
    cell              what is measured, the result of measuring it, scores over seeds
    measure           how a cell is measured
    worker, runner    processes that measure cells, and how cells are assigned to them
    folder            the folder of a study, used by one process at a time
    study_results     results on disk: a journal, merged into a Parquet table
    findings          all results of a study next to the published numbers
    best_of           best of several configurations, as in the paper's tables
    notes             what numbers mean, and what in them is not the paper's
    table, figures    findings as tables and as SVG
    paper_nodes       classes and degrees of the paper's sets
    class_bound       accuracy that noise alone allows
    class_oracle      accuracy of an encoder that knows every class
"""
