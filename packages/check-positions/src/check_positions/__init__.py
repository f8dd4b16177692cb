"""Is my positional code right, and which calls does a config.json describe?"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
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
    from check_positions.comparison import Difference, compare
    from check_positions.config import (
        ConfigError,
        Description,
        LayerKind,
        Part,
        describe_config,
        format_report,
        printed,
        read_config,
    )
    from check_positions.explanation import explain

__all__ = [
    "AttentionWatch",
    "ConfigError",
    "Description",
    "Difference",
    "Finding",
    "FromTransformers",
    "Layer",
    "LayerKind",
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
    "compare",
    "configured_frequencies",
    "describe_config",
    "explain",
    "format_report",
    "printed",  # the former name of format_report, until the next release
    "read_config",
    "read_layers",
    "read_rotation",
    "read_scaling",
    "report",
]
_MODULES = {  # of the names that are not the checker's
    "comparison": ("Difference", "compare"),
    "config": (
        "ConfigError", "Description", "LayerKind", "Part", "describe_config",
        "format_report", "printed", "read_config",
    ),
    "explanation": ("explain",),
}  # fmt: skip


def __getattr__(name: str) -> Any:
    """Import a public name when it is first used: the checker needs torch."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = [module for module, names in _MODULES.items() if name in names]
    module = found[0] if found else "checker"
    return getattr(import_module(f"{__name__}.{module}"), name)


def __dir__() -> list[str]:
    """Return all names, those included that are not imported yet."""
    return sorted({*globals(), *__all__})
