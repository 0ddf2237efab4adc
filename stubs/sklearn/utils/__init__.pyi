class TargetTags:
    def __init__(self, *, required: bool) -> None: ...

class ClassifierTags:
    def __init__(self) -> None: ...

class RegressorTags:
    def __init__(self) -> None: ...

class Tags:
    def __init__(
        self,
        *,
        estimator_type: str | None,
        target_tags: TargetTags,
        classifier_tags: ClassifierTags | None = None,
        regressor_tags: RegressorTags | None = None,
    ) -> None: ...
    estimator_type: str | None
