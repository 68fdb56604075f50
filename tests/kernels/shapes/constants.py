"""Constants of the package."""

BIAS = -0.5
