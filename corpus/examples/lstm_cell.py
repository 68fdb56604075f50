"""One LSTM step after the GEMMs: gates, cell and hidden state, fused."""

import cuda.tile as ct
import torch

_T = 256


def sigmoid(x):
    return 1 / (1 + ct.exp(-x))


def gate(gates, bias, batch, index, cols, hidden):
    at = index * hidden + cols
    return (ct.gather(gates, (batch, at)) + ct.gather(bias, at)).astype(ct.float32)


@ct.kernel
def lstm_step(gates, bias, c_prev, c_next, h_next, HIDDEN: ct.Constant[int], TILE: ct.Constant[int]):
    batch = ct.bid(0)
    cols = ct.bid(1) * TILE + ct.arange(TILE, dtype=ct.int32)
    i = sigmoid(gate(gates, bias, batch, 0, cols, HIDDEN))
    f = sigmoid(gate(gates, bias, batch, 1, cols, HIDDEN))
    g = ct.tanh(gate(gates, bias, batch, 2, cols, HIDDEN))
    o = sigmoid(gate(gates, bias, batch, 3, cols, HIDDEN))
    c = f * ct.gather(c_prev, (batch, cols)) + i * g
    ct.scatter(c_next, (batch, cols), c)
    ct.scatter(h_next, (batch, cols), (o * ct.tanh(c)).astype(h_next.dtype))


class LSTMCell(torch.nn.Module):
    def __init__(self, inputs, hidden):
        super().__init__()
        self.hidden = hidden
        self.wx = torch.nn.Linear(inputs, 4 * hidden, bias=False)
        self.wh = torch.nn.Linear(hidden, 4 * hidden, bias=True)

    def forward(self, x, state):
        h, c = state
        gates = self.wx(x) + torch.nn.functional.linear(h, self.wh.weight)
        h2, c2 = torch.empty_like(h), torch.empty_like(c)
        grid = (x.shape[0], ct.cdiv(self.hidden, _T))
        ct.launch(torch.cuda.current_stream(), grid, lstm_step, (gates, self.wh.bias, c, c2, h2, self.hidden, _T))
        return h2, c2
