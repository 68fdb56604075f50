"""European option prices by Black and Scholes; call and put in one pass."""

import math

import cuda.tile as ct
import torch

A1, A2, A3, A4, A5 = 0.319381530, -0.356563782, 1.781477937, -1.821255978, 1.330274429
INV_SQRT_2PI = 1.0 / math.sqrt(2.0 * math.pi)


def normal_cdf(d):
    k = 1.0 / (1.0 + 0.2316419 * ct.abs(d))
    poly = k * (A1 + k * (A2 + k * (A3 + k * (A4 + k * A5))))
    tail = INV_SQRT_2PI * ct.exp(-0.5 * d * d) * poly
    return ct.where(d > 0, 1.0 - tail, tail)


@ct.kernel
def black_scholes(spot, strike, years, call, put, rate, volatility, TILE: ct.Constant[int]):
    i = ct.bid(0)
    s = ct.load(spot, i, TILE)
    k = ct.load(strike, i, TILE)
    t = ct.load(years, i, TILE)
    root = ct.sqrt(t)
    d1 = (ct.log(s / k) + (rate + 0.5 * volatility * volatility) * t) / (volatility * root)
    d2 = d1 - volatility * root
    n1, n2 = normal_cdf(d1), normal_cdf(d2)
    discount = k * ct.exp(-rate * t)
    c = s * n1 - discount * n2
    ct.store(call, i, c)
    ct.store(put, i, c + discount - s)


def price(spot, strike, years, rate=0.02, volatility=0.3):
    n = spot.numel()
    call, put = torch.empty_like(spot), torch.empty_like(spot)
    ct.launch(
        torch.cuda.current_stream(),
        (ct.cdiv(n, 1024),),
        black_scholes,
        (spot, strike, years, call, put, rate, volatility, 1024),
    )
    return call, put


if __name__ == "__main__":
    n = 1 << 20
    s = torch.rand(n, device="cuda") * 100 + 1
    print(price(s, s * 1.1, torch.rand(n, device="cuda") + 0.1)[0][:4])
