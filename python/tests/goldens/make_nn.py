"""Makes nn.json by PyTorch: python3 make_nn.py. The cases are its keys: programs in which T is torch, or onestep."""

import json
import pathlib
import sys
import warnings
import zlib

MODULES = """Linear(3,4)|Linear(3,4,bias=False)|Bilinear(3,4,5)|Identity(3)|Embedding(5,3)|Embedding(5,3,padding_idx=-1)
Dropout(0.2)|Dropout2d()|LayerNorm(4)|LayerNorm((2,3),bias=False)|LayerNorm(4,elementwise_affine=False)|RMSNorm((2,3),eps=1e-6)
ReLU()|ReLU(True)|ReLU6()|SiLU()|Mish()|Hardsigmoid()|Hardswish()|SELU()|LeakyReLU(0.2,True)|ELU()|CELU(0.5)|Hardtanh(-2,2)
Threshold(0.1,20)|Softplus(2,10)|Hardshrink()|Softshrink()|GLU()|Softmax(-1)|LogSoftmax(1)|Softmin(1)|Softmax2d()|GELU("tanh")
PReLU(3)|Sigmoid()|Tanh()|Softsign()|Tanhshrink()|LogSigmoid()|Conv1d(3,4,3)|Conv2d(4,4,3,2,1,groups=2,bias=False)
Conv2d(3,4,(3,2),padding="same")|Conv2d(3,4,3,padding=1,padding_mode="circular")|ConvTranspose1d(3,4,3,2,1,1)
ConvTranspose2d(3,4,3,2,1,output_padding=1)|MaxPool1d(2)|MaxPool2d(2,1,ceil_mode=True)|AvgPool1d(2)|AvgPool2d((2,1),1,(1,0))
AdaptiveAvgPool1d(3)|AdaptiveAvgPool2d((2,None))|AdaptiveMaxPool2d(2)|ReflectionPad2d(1)|ReplicationPad2d((1,2,0,1))
ConstantPad1d(1,2.5)|ZeroPad2d(1)|CircularPad1d(1)|BatchNorm1d(4)|BatchNorm2d(3,affine=False)
BatchNorm1d(4,track_running_stats=False)|GroupNorm(2,4)|InstanceNorm1d(3)|InstanceNorm2d(3,affine=True,track_running_stats=True)
Flatten()|Unflatten(1,(2,2))|Upsample(scale_factor=2)|Upsample(size=(4,4),mode="bilinear")|PixelShuffle(2)|RNN(3,4)
RNN(3,4,2,nonlinearity="relu",batch_first=True,bidirectional=True)|LSTM(3,4)|GRU(3,4,2,bias=False)|RNNCell(3,4)|LSTMCell(3,4)
LSTM(3,4,2,batch_first=True,bidirectional=True,proj_size=2)|GRUCell(3,4,bias=False)|MultiheadAttention(4,2)
MultiheadAttention(4,2,kdim=3,vdim=5,add_bias_kv=True,bias=False)|TransformerEncoderLayer(4,2,8)|Transformer(4,2,2,2,8)
TransformerDecoderLayer(4,2,8,norm_first=True)|CrossEntropyLoss()|BCEWithLogitsLoss()|ModuleList()|Sequential()
Conv3d(2,4,3)|Conv3d(4,4,(1,2,3),2,1,groups=2,bias=False)|Conv3d(3,4,3,padding="same",padding_mode="replicate")
ConvTranspose3d(2,4,3,2,1,1)|MaxPool3d(2)|AvgPool3d((2,1,1),1)|AdaptiveAvgPool3d((2,None,3))|AdaptiveMaxPool3d(2)
InstanceNorm3d(2,affine=True)|LocalResponseNorm(3,k=2.0)|AlphaDropout(0.3)|FeatureAlphaDropout()|RReLU()|RReLU(0.1,0.2,True)
ChannelShuffle(2)|LPPool1d(2,3)|LPPool2d(2,(2,1),stride=1)|LPPool3d(3,2,ceil_mode=True)|MaxUnpool1d(2)|MaxUnpool2d(3,2,1)
MaxUnpool3d((1,2,2))|EmbeddingBag(5,3)|EmbeddingBag(5,3,mode="max",padding_idx=-1,max_norm=1.0)|LazyLinear(3)|LazyConv2d(4,3,2)
TripletMarginWithDistanceLoss(margin=0.5)|LazyConvTranspose1d(3,2)|LazyBatchNorm2d(affine=False)|LazyInstanceNorm1d()
Sequential(nn.Linear(1,2),nn.ReLU())|ModuleList([nn.Linear(1,2),nn.Linear(1,2),nn.ReLU()])|ModuleDict({"a":nn.Linear(1,2)})"""

FORWARD = {
    "Linear(3,4)": [(2, 3)],
    "Bilinear(3,4,5)": [(2, 6, 3), (2, 6, 4)],
    "RMSNorm((2,3),eps=1e-6)": [(4, 2, 3)],
    "LayerNorm((2,3))": [(4, 2, 3)],
    "Dropout(0.3)": [(7, 9)],
    "Dropout2d(0.3)": [(7, 9, 2, 2)],
    "Hardshrink()": [(5, 6)],
    "Softshrink()": [(5, 6)],
    "PReLU(3)": [(2, 3, 4)],
    "GLU()": [(5, 6)],
    "Threshold(0.1,20)": [(4, 5)],
    "Conv1d(3,4,3)": [(2, 3, 8)],
    "Conv2d(3,4,(3,2),padding='same',padding_mode='reflect')": [(2, 3, 5, 5)],
    "ConvTranspose2d(3,4,3,2,1,output_padding=1)": [(2, 3, 4, 4)],
    "MaxPool2d(2,1,ceil_mode=True)": [(2, 3, 5, 5)],
    "AdaptiveAvgPool2d((2,None))": [(2, 3, 5, 5)],
    "ReplicationPad2d((1,2,0,1))": [(2, 3, 5, 5)],
    "BatchNorm1d(4,momentum=None)": [(5, 4, 3)],
    "BatchNorm2d(3)": [(4, 3, 2, 2)],
    "GroupNorm(2,4)": [(3, 4, 5)],
    "InstanceNorm1d(3)": [(3, 6)],
    "PixelShuffle(2)": [(2, 8, 3, 3)],
    "PixelUnshuffle(2)": [(2, 2, 4, 4)],
    "RNN(3,4,2,nonlinearity='relu',batch_first=True,bidirectional=True)": [(2, 5, 3)],
    "LSTM(3,4)": [(5, 3)],
    "LSTM(3,4,2,batch_first=True,bidirectional=True,proj_size=2)": [(2, 5, 3)],
    "GRU(3,4,2,dropout=0.5)": [(5, 2, 3)],
    "GRUCell(3,4,bias=False)": [(3,)],
    "LSTMCell(3,4)": [(2, 3)],
    "MultiheadAttention(4,2)": [(5, 2, 4), (6, 2, 4), (6, 2, 4)],
    "MultiheadAttention(4,2,kdim=3,vdim=5,add_bias_kv=True,add_zero_attn=True,bias=False)": [(5, 2, 4), (6, 2, 3), (6, 2, 5)],
    "TransformerEncoderLayer(4,2,8,dropout=0.1,batch_first=True,norm_first=True,activation='gelu')": [(5, 2, 4)],
    "Transformer(4,2,2,2,8,dropout=0.2)": [(5, 2, 4), (6, 2, 4)],
    "Conv3d(2,4,(3,2,1),(2,1,1),(1,0,1),(1,2,1),groups=2)": [(2, 2, 5, 4, 3)],
    "Conv3d(2,3,2,padding='same',padding_mode='circular')": [(2, 4, 3, 3)],
    "ConvTranspose3d(2,4,(3,2,1),2,1,1,groups=2,dilation=(1,2,2))": [(2, 2, 3, 3, 3)],
    "MaxPool3d((2,3,2),(1,2,1),1,(2,1,1),return_indices=True,ceil_mode=True)": [(2, 2, 4, 5, 4)],
    "AvgPool3d((2,3,2),(1,2,1),1,ceil_mode=True,count_include_pad=False)": [(2, 2, 4, 5, 4)],
    "AvgPool3d(2,divisor_override=3)": [(2, 4, 5, 4)],
    "AdaptiveAvgPool3d((2,None,3))": [(2, 2, 5, 2, 4)],
    "AdaptiveMaxPool3d((2,3,1),True)": [(2, 5, 4, 3)],
    "InstanceNorm3d(2,affine=True)": [(2, 2, 3, 2, 2)],
    "LocalResponseNorm(3,0.1,0.5,2.0)": [(2, 5, 3)],
    "LocalResponseNorm(2,0.1)": [(2, 3, 2, 2)],
    "AlphaDropout(0.3)": [(5, 7)],
    "FeatureAlphaDropout(0.4)": [(3, 4, 2)],
    "RReLU(0.1,0.5)": [(5, 7)],
    "RReLU().eval()": [(5, 7)],
    "ChannelShuffle(2)": [(2, 6, 2)],
    "LPPool1d(2,3,2,ceil_mode=True)": [(2, 3, 8)],
    "LPPool2d(float('inf'),(2,1),stride=1)": [(2, 3, 4, 4)],
    "LPPool3d(2,2)": [(2, 2, 4, 4, 4)],
    "TripletMarginWithDistanceLoss(margin=2.0,swap=True)": [(3, 4), (3, 4), (3, 4)],
    "TripletMarginWithDistanceLoss(distance_function=nn.CosineSimilarity(),reduction='none')": [(3, 4), (3, 4), (3, 4)],
    "LazyLinear(3)": [(2, 4)],
    "LazyConv1d(4,3,groups=2,padding=1)": [(2, 4, 5)],
    "LazyConv3d(2,2,bias=False)": [(3, 2, 2, 2)],
    "LazyConvTranspose2d(4,3,2,1,output_padding=1,groups=2)": [(2, 4, 3, 3)],
    "LazyBatchNorm1d()": [(4, 3, 2)],
    "LazyInstanceNorm2d(affine=True)": [(2, 3, 2, 2)],
    "TripletMarginLoss()": [(3, 4), (3, 4), (3, 4)],
    "PoissonNLLLoss()": [(3, 4), (3, 4)],
    "SmoothL1Loss()": [(3, 4), (3, 4)],
    "CosineSimilarity()": [(3, 4), (3, 4)],
}

INIT = [
    "xavier_uniform_(w)",
    "xavier_normal_(w,2.0)",
    "kaiming_normal_(w,nonlinearity='relu')",
    "trunc_normal_(w,std=0.02)",
    "kaiming_uniform_(w,mode='fan_out')",
    "trunc_normal_(w)",
    "trunc_normal_(w,0,1,1.5,3)",
    "eye_(w)",
    "sparse_(w,0.3)",
]

OPTIMIZERS = [
    "SGD(p,lr=.1)",
    "SGD(p,lr=.1,momentum=.9,nesterov=True,weight_decay=.1)",
    "Adam(p,lr=.01,weight_decay=.1,amsgrad=True)",
    "SGD(p,lr=.1,momentum=.9,dampening=.2,maximize=True)",
    "AdamW(p,lr=.01)",
    "Adam(p,lr=.01)",
    "RMSprop(p)",
    "RMSprop(p,momentum=.9,centered=True,weight_decay=.1)",
    "Adagrad(p,lr_decay=.1,weight_decay=.1)",
    "Adadelta(p)",
    "AdamW([{'params':p[:1],'weight_decay':.5},{'params':p[1:]}],lr=.01,betas=(.8,.9))",
    "LBFGS(p,lr=.1,max_iter=4)",
    "LBFGS(p,line_search_fn='strong_wolfe',history_size=3)",
]

SCHEDULES = [
    "StepLR(o,3)",
    "MultiStepLR(o,[2,5,5])",
    "ExponentialLR(o,.9)",
    "CosineAnnealingLR(o,5,.01)",
    "LinearLR(o,.1,1,7)",
    "CosineAnnealingWarmRestarts(o,3,2)",
    "ConstantLR(o,.3,4)",
    "LambdaLR(o,lambda e:.9**e)",
    "PolynomialLR(o,8,2.)",
    "SequentialLR(o,[S.LinearLR(o,.1,1,3),S.CosineAnnealingLR(o,9)],[3])",
    "OneCycleLR(o,.3,40)",
    "ReduceLROnPlateau(o,patience=1,threshold=.1)",
    "MultiplicativeLR(o,lambda e:.95)",
    "OneCycleLR(o,.3,30,three_phase=True,anneal_strategy='linear',cycle_momentum=False)",
]


def bits(tensor):
    """A checksum of all elements."""
    return zlib.crc32(repr(tensor.detach().double().reshape(-1).tolist()).encode())


def module(T, case):
    T.manual_seed(3)
    m = eval("nn." + case, {"nn": T.nn})
    state = m.state_dict().items()
    return {"repr": repr(m), "state": {k: "none yet" if T.nn.parameter.is_lazy(v) else bits(v) for k, v in state}}


def flat(T, y):
    return [y] if isinstance(y, T.Tensor) else [z for part in y if part is not None for z in flat(T, part)]


def forward(T, case, shapes):
    """The first values and a weighted sum of the outputs and of every gradient."""
    T.manual_seed(3)
    m = eval("nn." + case, {"nn": T.nn})
    xs = [T.randn(*shape, requires_grad=True) for shape in shapes]
    outs = flat(T, m(*xs))
    sum((out * out * (i + 1)).sum() for i, out in enumerate(outs) if out.requires_grad).backward()
    tensors = outs + [p.grad for p in m.parameters() if p.grad is not None] + [x.grad for x in xs]

    def short(x):
        x = x.detach().double().reshape(-1)
        return [(x * T.arange(1, x.numel() + 1)).sum().item(), *x[:3].tolist()]

    return [short(x) for x in tensors]


def initial(T, case):
    T.manual_seed(5)
    return [bits(eval("init." + case, {"init": T.nn.init, "w": T.empty(7, 9)})), T.randint(10**6, (1,)).item()]


def trained(T, make, steps=12):
    """Rates, settings, parameters after some steps of a small regression; in double, so that LBFGS agrees."""
    T.manual_seed(1)
    m = T.nn.Sequential(T.nn.Linear(3, 5), T.nn.Tanh(), T.nn.Linear(5, 1)).double()
    x, y = T.randn(20, 3).double(), T.randn(20, 1).double()
    optimizer, schedule = make(list(m.parameters()))
    rates = []

    def closure():
        optimizer.zero_grad()
        loss = T.nn.functional.mse_loss(m(x), y)
        loss.backward()
        return loss

    for _ in range(steps):
        loss = optimizer.step(closure)
        if schedule is not None:
            schedule.step(*([loss.item()] if type(schedule).__name__ == "ReduceLROnPlateau" else []))
        rates.append(optimizer.param_groups[0]["lr"])
    state = optimizer.state_dict()
    return {
        "rates": rates,
        "repr": repr(optimizer),
        "groups": str(state["param_groups"]),
        "state": [] if "LBFGS" in repr(optimizer) else [sorted(s) for s in state["state"].values()],
        "values": [v for p in m.parameters() for v in p.detach().reshape(-1).tolist()],
    }


def optimizer(T, case):
    return trained(T, lambda p: (eval("O." + case, {"O": T.optim, "p": p}), None), 3 if "LBFGS" in case else 12)


def schedule(T, case):
    def make(p):
        o = T.optim.SGD(p, lr=0.1, momentum=0.8)
        return o, eval("S." + case, {"S": T.optim.lr_scheduler, "o": o})

    return trained(T, make, 20)


def orders(T):
    D = T.utils.data
    T.manual_seed(0)
    data = D.TensorDataset(T.arange(10), T.arange(10) * 0.5)
    g = T.Generator()
    g.manual_seed(4)
    result = []
    for loader in (
        D.DataLoader(data, 3, True),
        D.DataLoader(data, 4, True, drop_last=True, generator=g),
        D.DataLoader(data, 3, True, num_workers=0),
    ):
        for _ in range(2):
            result += [batch[0].tolist() for batch in loader]
    result += [list(part.indices) for part in D.random_split(data, [0.5, 0.3, 0.2])]
    result += [list(D.RandomSampler(data, True, 40)), list(D.SubsetRandomSampler([3, 4, 9]))]
    result += [list(D.WeightedRandomSampler([0.1, 0.2, 0.7], 5)), T.randint(10**6, (1,)).item()]
    return result


def main():
    import torch as T

    warnings.simplefilter("ignore")
    golden = {
        "modules": {c: module(T, c) for c in MODULES.replace("\n", "|").split("|")},
        "forward": {c: forward(T, c, shapes) for c, shapes in FORWARD.items()},
        "init": {c: initial(T, c) for c in INIT},
        "optimizers": {c: optimizer(T, c) for c in OPTIMIZERS},
        "schedules": {c: schedule(T, c)["rates"] for c in SCHEDULES},
        "orders": orders(T),
    }
    path = pathlib.Path(__file__).with_name("nn.json")
    path.write_text("{\n" + ",\n".join(f'"{k}": {json.dumps(v)}' for k, v in golden.items()) + "\n}\n")


if __name__ == "__main__":
    sys.exit(main())
