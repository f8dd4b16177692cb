"""Bugs in released code: the key-value cache and its positions."""

import torch
from torch.nn.functional import logsigmoid, pad

from exhibits._broken_and_mended import compare
from exhibits._toy_decoder import (
    DIM,
    angles,
    behind,
    check_decoder,
    check_server,
    look,
    turned,
    visible,
)
from snippets.check_positions import check_rotation


def chunk_takes_the_last_places():
    prompt = torch.arange(24)  # positions, counted once for all chunks

    def broken(ids, real, memory):
        return prompt[-ids.shape[1] :].expand(ids.shape)

    def fixed(ids, real, memory):
        begin = memory.length
        return prompt[begin : begin + ids.shape[1]].expand(ids.shape)

    return compare(broken, fixed, check_server, finds="whole_as_chunks")


def length_of_the_first_layer():
    def asking(which):
        def attend(layer, q, k, v, places, real, cache):
            places = behind(cache[which(layer)].length, q)
            q, k = turned(q, places), turned(k, places)
            cache[layer] = cache[layer].plus(k, v, places, real)
            return look(q, cache[layer])

        return attend

    broken = asking(lambda layer: 0)  # already grown for later layers
    fixed = asking(lambda layer: layer)

    return compare(broken, fixed, check_decoder, finds="whole_as_steps")


def query_after_the_cache_grew():
    def broken(layer, q, k, v, places, real, cache):
        k = turned(k, behind(cache[layer].length, q))
        cache[layer] = cache[layer].plus(k, v, places, real)
        q = turned(q, behind(cache[layer].length, q))
        return look(q, cache[layer])

    def fixed(layer, q, k, v, places, real, cache):
        here = behind(cache[layer].length, q)  # computed once, for both
        k = turned(k, here)
        cache[layer] = cache[layer].plus(k, v, places, real)
        q = turned(q, here)
        return look(q, cache[layer])

    return compare(broken, fixed, check_decoder, finds="whole_as_steps")


def offset_is_what_is_left():
    window = 6

    def windowed(count):
        def attend(layer, q, k, v, places, real, cache):
            places = behind(count(cache[layer]), q)
            q, k = turned(q, places), turned(k, places)
            kept = cache[layer].plus(k, v, places, real)
            cache[layer] = kept.latest(window - 1)  # evict the rest
            return look(q, kept, window=window)

        return attend

    broken = windowed(lambda memory: memory.length)
    fixed = windowed(lambda memory: memory.next_place)

    return compare(broken, fixed, check_decoder, finds="whole_as_steps")


def delta_lost_in_decoding():
    def placed(ids, real, memory):  # ids below 10 are patches: no step
        return memory.next_place - 1 + ((ids >= 10) & real).cumsum(-1)

    def broken(ids, real, memory):
        if memory.length and ids.shape[1] == 1:
            return memory.real.sum(-1, keepdim=True)  # the cache length
        return placed(ids, real, memory)

    fixed = placed

    return compare(broken, fixed, check_server, finds="whole_as_steps")


def gates_of_new_tokens():
    def forgetting(gated):
        def attend(layer, q, k, v, places, real, cache):
            cache[layer] = kept = cache[layer].plus(k, v, places, real)
            gates = logsigmoid(gated(k, kept.k).mean(-1) + 2)
            total = gates.cumsum(-1)  # (batch, heads, tokens)
            fades = total[..., -q.shape[2] :, None] - total[..., None, :]
            fades = pad(fades, (kept.length - fades.shape[-1], 0))
            scores = q @ kept.k.mT / DIM**0.5 + fades
            hidden = ~visible(kept, q.shape[2])
            return scores.masked_fill(hidden, -1e9).softmax(-1) @ kept.v

        return attend

    broken = forgetting(lambda new, kept: new)  # no decay before them
    fixed = forgetting(lambda new, kept: kept)

    return compare(broken, fixed, check_decoder, finds="whole_as_steps")


def chunk_reused_where_it_was():
    def broken(x, positions):
        chunk = tuple(x.flatten().tolist())
        return turned_keys.setdefault(chunk, turned(x, positions))

    def fixed(x, positions):
        chunk = tuple(x.flatten().tolist())
        return turned(plain_keys.setdefault(chunk, x), positions)

    def check(rotate_keys):
        return check_rotation(turned, DIM, rotate_keys=rotate_keys)

    turned_keys, plain_keys = {}, {}
    return compare(broken, fixed, check, finds="offsets_alone")


def moved_by_another_rope():
    def scaled(positions, dim):  # the model's: slow pairs divided by 8
        angle = angles(positions, dim)
        return torch.cat((angle[..., :4], angle[..., 4:] / 8), -1)

    def broken(x, positions):
        cached = turned(x, positions % 16, scaled)  # in a chunk of 16
        return turned(cached, positions - positions % 16)

    def fixed(x, positions):
        cached = turned(x, positions % 16, scaled)
        return turned(cached, positions - positions % 16, scaled)

    def check(rotate):
        return check_rotation(rotate, DIM)

    return compare(broken, fixed, check, finds="offsets_alone")


def shift_turns_what_never_turned():
    share = 8  # of 16 channels are rotated

    def partly(x, positions):
        first = turned(x[..., :share], positions)
        return torch.cat((first, x[..., share:]), -1)

    def broken(x, positions):
        return turned(partly(x, positions % 16), positions - positions % 16)

    def fixed(x, positions):
        return partly(partly(x, positions % 16), positions - positions % 16)

    def check(rotate):
        return check_rotation(rotate, DIM)

    return compare(broken, fixed, check, finds="offsets_alone")


def shifts_that_add_up():
    step = torch.tensor([16])

    def broken(x, positions):
        k = turned(x, positions % 16).half()
        for n in range(int(positions.max()) // 16):
            later = (positions // 16 > n)[:, None]
            k = torch.where(later, turned(k.float(), step).half(), k)
        return k.to(x.dtype)

    def fixed(x, positions):
        return turned(x.half().float(), positions).to(x.dtype)

    def check(rotate):
        return check_rotation(rotate, DIM, length=4096)

    return compare(broken, fixed, check, finds="offsets_alone")
