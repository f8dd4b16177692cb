"""Is my positional code right, and which calls does a config.json describe?"""

from check_positions.checker import (
    AttentionWatch,
    Finding,
    FromTransformers,
    Layer,
    Rotation,
    assert_positions,
    check_attention,
    check_layers,
    check_model,
    check_module,
    check_rotation,
    check_start,
    check_transformers,
    configured_frequencies,
    read_layers,
    read_rotation,
    read_scaling,
    report,
)
from check_positions.config import Part, format_report, printed, read_config

__all__ = [
    "AttentionWatch",
    "Finding",
    "FromTransformers",
    "Layer",
    "Part",
    "Rotation",
    "assert_positions",
    "check_attention",
    "check_layers",
    "check_model",
    "check_module",
    "check_rotation",
    "check_start",
    "check_transformers",
    "configured_frequencies",
    "format_report",
    "printed",  # the former name of format_report, until the next release
    "read_config",
    "read_layers",
    "read_rotation",
    "read_scaling",
    "report",
]
