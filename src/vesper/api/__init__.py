"""Python interface: estimators that take arrays or graphs of other libraries and predict nodes.

In reading order:

- `estimator`, `regressor`: `Vesper` for classes and `VesperRegressor` for numbers;
- `base_estimator`: what both share: parameters, `fit`, `score`, `report`;
- `inputs`, `node_ids`, `targets`: from the user's arrays to the tables of the two parties;
- `encoder`: custom encoders;
- `training`, `fitted`: one fit in this process, and the fitted model.
"""
