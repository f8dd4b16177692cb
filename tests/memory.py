"""What a function allocates, as torch's own allocator reports it."""

from torch.profiler import ProfilerActivity, profile


def peak_bytes(function):
    """The most bytes that tensors made during a call take up at one time, its result included."""
    function()  # what is set up once is no part of it
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as profiler:
        kept = function()
    events = profiler.profiler.kineto_results.events()
    changes = sorted((event.start_ns(), event.nbytes()) for event in events if event.name() == "[memory]")
    now = most = 0
    for _, change in changes:
        now += change
        most = max(most, now)
    assert kept is not None and most > 0
    return most
