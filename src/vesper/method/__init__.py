"""Every method behind one interface: what runs at each party, and what privacy it provides.

In reading order:

- `base`: the interface, and `NoisePlan`, the noise of a method and its guarantee.
- `settings`: every setting of a run, and whether it can change epsilon.
- `noise_plan`: from a budget to the noise of each release.
- `certified`: the certified method. `baselines`: everything that it is compared with.
- `registry`: methods by name, and which settings each of them reads.
- `options`: aggregators, decoders and encoders, and which methods have a choice.
- `export_columns`: released sums and logits as named columns.
"""
