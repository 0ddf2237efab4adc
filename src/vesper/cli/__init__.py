"""Command line: verbs parse options, call the library and print results.

- `app`: the `vesper` command, exit codes, errors without tracebacks;
- `<verb>_command`: one module per verb; `plan_page` is the page that `vesper plan` prints;
- `budget_decisions`: the verbs of `vesper budget` that write to a ledger;
- `setting_options`: settings on the command line, `--set` among them;
- `console`, `side_by_side`: tables, JSON and progress on a terminal or in a pipe;
- `verbs`, `examples`: help by purpose and with examples; options that are given twice are refused;
- `interrupt`: verbs that run until Ctrl-C, and what an interrupted one says.
"""
