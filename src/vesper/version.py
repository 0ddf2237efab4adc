"""The version, in one place that imports nothing."""

VERSION = "0.1.0"
