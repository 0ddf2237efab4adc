"""Python interface: estimators that take arrays or graphs of other libraries and predict nodes.

In reading order:

- `estimator`, `regressor`: `Vesper` for classes and `VesperRegressor` for numbers;
- `base_estimator`, `fitted_state`, `parameters`: what both share: parameters, `fit`, `score`,
  `report`, `save`;
- `inputs`, `node_names`, `node_ids`, `targets`: from the user's arrays to the parties' tables;
- `encoder`: custom encoders;
- `training`, `fitted`, `trained_model`: one fit in this process, and the fitted model;
- `charged_fit`, `fit_folder`: what a ledger adds: a fit is saved at once and charged once;
- `saving`, `fitted_facts`, `model_file`: the file of a fitted model;
- `later_graph`: the same model on a graph that came after training;
- `node_estimator`: ids of nodes in the place of rows, for searches of scikit-learn.
"""
