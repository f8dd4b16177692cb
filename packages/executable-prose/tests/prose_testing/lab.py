"""A small project that has a lab, with its page, its check and the mistakes that the check knows."""

from prose_testing.projects import FILES

LAB = """
    # %% [markdown]
    # # Lab: scale
    #
    # Scale $x^2$, see [home](../index.md#scaling) and [elsewhere](https://example.org/a.md).

    # %%
    import torch

    from labs.judge import judge
    from snippets.scale import scaled

    print(scaled(1.0), "<")

    # %% tags=["starter"]
    def half(x):
        return x


    # %% tags=["solution"]
    def half(x):
        return x / 2


    # %% tags=["judge"]
    def check_half(yours):
        return judge(yours, 2.0)


    # %% tags=["check"]
    passed = check_half(half)

    # %% [markdown]
    # <details markdown="1"><summary>Hint 1</summary>
    #
    # Divide by **two**.
    #
    # </details>

    # %% alt="A line that falls."
    import matplotlib.pyplot as plt

    plt.plot([half(2.0), 0])
    plt.show()

    # %% [markdown]
    # The end.
    """

JUDGE = """
    def judge(yours, x):
        print("right" if yours(x) == 1 else f"wrong,\\n{yours(x)}")
        open(__file__.replace("judge.py", "scaling.toml")).close()
    """

MISTAKES = """
    [[half]]
    was = "x / 2"
    ways = [{ now = "x", says = "You return x." }]
    """

PROJECT = FILES | {
    "labs/__init__.py": "",
    "labs/judge.py": JUDGE,
    "labs/scaling.py": LAB,
    "labs/scaling.toml": MISTAKES,
    "requirements.txt": "matplotlib==3.1\ntorch==2.1\ntorchvision==9\n",
    "docs/labs/scaling.md": "---\ntitle: Scaling\n---\n\n```lab scaling\n```\n",
    "docs/reference/scale.md": "# Scale\n",
}
