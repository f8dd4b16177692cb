"""The directives that every site has. Each is a function of a page, the argument and the body.

What it returns are parts: HTML as text, and lists of Markdown lines. See registry.py.
"""

from executable_prose.rendering.directives import claims, exhibit, lab, mermaid  # noqa: F401
