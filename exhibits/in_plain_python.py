"""Encodings in loops of plain Python, which a reader changes and runs.

A page has the lines of each below its docstring, as a program of their own
for a small Python without torch. So each imports what it needs, and nothing
but `math` and `json`.
"""


def sinusoidal():
    from math import cos, sin

    base = 10_000  # try 10
    width = 6  # even: each pair of numbers is a hand

    def encoding(position):
        row = []
        for pair in range(width // 2):
            speed = base ** (-2 * pair / width)
            angle = position * speed
            row += [sin(angle), cos(angle)]
        return row

    for position in (0, 1, 2, 3, 100):
        row = [f"{x:5.2f}" for x in encoding(position)]
        print(f"{position:3}:", *row)


def rope():
    from math import cos, sin

    base = 10_000  # try 10
    query = [2, 1, 2, 1]  # two pairs, each an arrow
    key = [1, 2, 1, 2]

    def turned(vector, position):
        made = []
        for at in range(0, len(vector), 2):
            x, y = vector[at], vector[at + 1]
            angle = position * base ** (-at / len(vector))
            made.append(x * cos(angle) - y * sin(angle))
            made.append(x * sin(angle) + y * cos(angle))
        return made

    def score(m, n):
        q, k = turned(query, m), turned(key, n)
        return sum(q[i] * k[i] for i in range(len(q)))

    for m, n in [(3, 3), (5, 3), (105, 103), (3, 5)]:
        print(f"query at {m}, key at {n}: {score(m, n):.2f}")


def rope_exercise():
    from math import acos, cos, sin

    def frequencies(dim, base):  # step one: change the 1
        return [1 for pair in range(dim // 2)]

    def rotate(x, y, angle):  # step two: change both numbers
        return x * cos(angle), y * sin(angle)

    def check(step, yours, known):
        yours = [round(x, 4) for x in yours]
        words = [words for numbers, words in known if numbers == yours]
        print(step, words[0] if words else f"Not yet: {yours} is wrong.")

    known = [
        ([1, 0.01], "Right."),
        ([1, 1], "All pairs have the same frequency."),
        ([1, 0.1], "A factor two is missing: -2 * pair / dim."),
        ([1, 100], "A minus sign is missing: -2 * pair / dim."),
    ]
    check("Step one.", frequencies(4, 10_000), known)
    known = [
        ([2, 11], "Right."),
        ([6, 4], "Each new number needs both x and y."),
        ([10, -5], "Look at the signs: you rotate clockwise."),
        ([10, 11], "Look at the signs: the arrow grows."),
    ]
    check("Step two.", rotate(10, 5, acos(0.6)), known)


def alibi():
    from math import exp

    scores = [2, 1, 0, 1.5]  # the last is of the word itself
    slope = 0.5  # try 0, then 2

    def weights(scores):
        powers = [exp(score) for score in scores]
        return [power / sum(powers) for power in powers]

    last = len(scores) - 1
    biased = []
    for place in range(len(scores)):
        steps = last - place
        biased.append(scores[place] - slope * steps)

    print("scores ", *[f"{x:5.2f}" for x in biased])
    print("weights", *[f"{x:5.2f}" for x in weights(biased)])


def serve_longer():
    import json
    from math import log

    model = "Qwen/Qwen3-8B"
    wanted = 131072  # tokens
    trained = 32768  # tokens; 0 takes what the file says
    file = """{
      "max_position_embeddings": 40960,
      "rope_theta": 1000000
    }"""  # or all of your config.json between the quotes

    file = json.loads(file)
    file = file.get("text_config", file)
    known = file.get("rope_parameters") or file.get("rope_scaling") or {}
    method = known.get("rope_type", known.get("type", "default"))
    if method != "default":
        print("# The file already has the method", method)
    listed = file["max_position_embeddings"]
    assert wanted > listed, f"{listed} tokens need no scaling: set the limit"
    base = float(known.get("rope_theta") or file["rope_theta"])
    trained = trained or known.get("original_max_position_embeddings", listed)

    factor = wanted / trained
    old = f'"factor": {factor}, "original_max_position_embeddings": {trained}'
    rope = f'{{"rope_type": "yarn", "rope_theta": {base}, {old}}}'
    size = f'"max_position_embeddings": {wanted}'
    new = f'{{{size}, "rope_parameters": {rope}}}'

    print("# vLLM")
    print(f"vllm serve {model} --max-model-len {wanted} \\")
    print(f"  --hf-overrides '{new}'")
    print("# SGLang")
    print(f"python -m sglang.launch_server --model-path {model} \\")
    print(f"  --context-length {wanted} \\")
    print(f"  --json-model-override-args '{new}'")
    print("# llama.cpp")
    print(f"llama-server -m model.gguf -c {wanted} --rope-scaling yarn \\")
    print(f"  --rope-scale {factor} --yarn-orig-ctx {trained}")
    print("# transformers: arguments of from_pretrained")
    print(f"max_position_embeddings={wanted}, rope_parameters={rope}")
    print("# config.json for mlx-lm, and before a conversion to GGUF")
    print(f'{size}, "rope_theta": {base},')
    print(f'"rope_scaling": {{"rope_type": "yarn", {old}}}')
    print("# q and k are multiplied by", round(0.1 * log(factor) + 1, 4))


def rope_bases():
    from math import pi

    wanted = 131072  # tokens
    trained = 4096  # tokens, with the base below
    base = 10000.0  # rope_theta
    head = 128  # channels of a head that rotate

    def wavelength(pair):
        return 2 * pi * base ** (2 * pair / head)

    ntk = base * (wanted / trained) ** (head / (head - 2))
    print("NTK-aware scaling:", round(ntk))

    full = [n for n in range(head // 2) if wavelength(n) <= trained]
    critical = 2 * len(full)
    larger = (wanted / (2 * pi)) ** (head / critical)
    print("critical dimension:", critical, "channels")
    print("base by that rule:", round(larger))
