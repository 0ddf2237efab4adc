"""Noise of baselines that release sums: counted exactly, or as others count it.

| accounting | noise | certified |
| --- | --- | --- |
| `exact` | sensitivity sqrt 2, exact conversion | epsilon |
| `as-published` | sensitivity 1, Renyi conversion: too little | nothing; claimed epsilon |
| `theorem-1` | the paper's re-analysis, each batch a release: 7 to 8 x as much | the same |

What the noise of the last two is really worth is in the promise too.
"""

from vesper.method.budgeting import budget_of, certified, refuse_what_is_not_drawn, unprotected
from vesper.method.method import Promise, Sizes
from vesper.method.settings import Config
from vesper.privacy import theorem_1
from vesper.privacy.budget import Budget
from vesper.privacy.published import published_noise_std, worth_of

PAPER_EPOCHS, PAPER_BATCH_SIZE = 5, 256
"""With which the paper trains this baseline; its analysis charges each batch."""


LARGEST_DRAWN = 16_384.0
"""No ledger is charged for what is only claimed: the noise may be as large as can be drawn."""


def noise_of_sums(config: Config, sizes: Sizes, *, releases: int) -> Promise:
    """Promise `releases` noisy sums, counted as the settings say."""
    accounting = config.privacy.accounting
    if accounting == "exact":
        width = config.run.message_width
        return certified(config.privacy, sizes, releases=releases, width=width)
    budget = budget_of(config.privacy, sizes)
    if budget is None:
        return unprotected(releases)
    if accounting == "as-published":
        noise_std = published_noise_std(budget=budget, releases=releases)
    else:
        noise_std = _theorem_1_noise_std(config, sizes, budget, releases=releases)
    noise_stds = (noise_std,) * releases
    refuse_what_is_not_drawn(budget, noise_stds, most=LARGEST_DRAWN)
    return Promise(
        plan="paper",
        certified_epsilon=None,
        claimed_epsilon=budget.epsilon,
        delta=budget.delta,
        noise_stds=noise_stds,
        worth_epsilon=worth_of(noise_stds=noise_stds, delta=budget.delta),
    )


def _theorem_1_noise_std(config: Config, sizes: Sizes, budget: Budget, *, releases: int) -> float:
    training = theorem_1.PaperTraining(
        num_train_nodes=sizes.num_train,
        batch_size=min(config.run.batch_size or PAPER_BATCH_SIZE, sizes.num_train),
        max_degree=config.privacy.max_degree,
        num_layers=releases,
        num_epochs=PAPER_EPOCHS,
    )
    return theorem_1.noise_std_for(training=training, budget=budget)
