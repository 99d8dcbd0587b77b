"""python -m onestep.as_torch: names, arguments, __main__, tracebacks, exit status, coverage."""
import os
import subprocess
import sys
from pathlib import Path

import pytest

import onestep

PACKAGE = Path(onestep.__file__).parents[1]


def run(tmp_path, program, *arguments, options=()):
    (tmp_path / "program.py").write_text(program)
    environment = os.environ | {"PYTHONPATH": str(PACKAGE) + os.pathsep + os.environ.get("PYTHONPATH", "")}
    command = [sys.executable, "-m", "onestep.as_torch", *options, "program.py", *arguments]
    return subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True)


def out(tmp_path, program, *arguments):
    done = run(tmp_path, program, *arguments)
    assert done.returncode == 0, done.stderr
    return done.stdout


IMPORTS = [
    "import torch", "import torch.nn as nn", "import torch.nn.functional as F", "from torch import nn, optim", "import torch.optim.lr_scheduler",
    "from torch.utils.data import DataLoader, Dataset", "import torch.utils.checkpoint", "from torch.autograd import grad",
    "import torch.backends.cudnn", "from torch.utils._pytree import tree_map", "from torch.fx import wrap", "from torch.func import vmap, grad",
    "from torch.jit.annotations import List", "import importlib.util, torch; importlib.util.find_spec('torch')", "from torch.nn.parallel import DistributedDataParallel", "from torch.distributed import init_process_group",
    "from torch.cuda.amp import GradScaler, autocast", "import torch.distributed.fsdp.wrap", "import torch._dynamo", "import torch.version",
    "from torch.nn.modules.activation import MultiheadAttention", "from torch.utils.data.dataloader import DataLoader",
    "from torch.hub import HASH_REGEX, download_url_to_file, load, urlparse", "from torch.utils import model_zoo", "from torch._utils import _flatten_dense_tensors",
]


def test_imports(tmp_path):
    program = f"""
import os
for line in {IMPORTS}:  # each in a process that has imported nothing of torch
    child = os.fork()
    if child == 0:
        exec(line)
        os._exit(0)
    print("imported" if os.waitpid(child, 0)[1] == 0 else "failed: " + line, flush=True)
"""
    assert out(tmp_path, program) == "imported\n" * len(IMPORTS)


def test_the_modules_are_onesteps(tmp_path):
    program = "import torch, torch.nn as nn, onestep\nprint(nn is onestep.nn, torch.Tensor is onestep.Tensor, torch.exp is onestep.exp)"
    assert out(tmp_path, program) == "True True True\n"


def test_arguments_and_main(tmp_path):
    program = "import sys\nprint(sys.argv, __name__, __file__, sys.modules['__main__'].__dict__ is globals())"
    assert out(tmp_path, program, "--lr", "1") == f"['program.py', '--lr', '1'] __main__ {tmp_path / 'program.py'} True\n"


def test_annotations_are_what_the_program_writes(tmp_path):
    program = "import dataclasses\n@dataclasses.dataclass\nclass Args:\n    lr: float = 1e-3\nprint(dataclasses.fields(Args)[0].type)"
    assert out(tmp_path, program) == "<class 'float'>\n"
    assert out(tmp_path, "from __future__ import annotations\n" + program) == "float\n"


def test_the_programs_directory_is_searched(tmp_path):
    (tmp_path / "beside.py").write_text("import torch\nvalue = torch.ones(2).sum().item()")
    assert out(tmp_path, "import beside; print(beside.value)") == "2.0\n"


def test_exit_status_and_traceback_are_the_programs(tmp_path):
    assert run(tmp_path, "raise SystemExit(7)").returncode == 7
    assert run(tmp_path, "import sys; sys.exit('no')").stderr == "no\n"
    program = "import torch\ndef f():\n    raise KeyError('x')\nf()\n"
    done = run(tmp_path, program)
    plain = subprocess.run([sys.executable, "program.py"], cwd=tmp_path, capture_output=True, text=True,
                           env=os.environ | {"PYTHONPATH": str(stand_in(tmp_path))})
    assert done.returncode == plain.returncode == 1
    assert done.stderr == plain.stderr


def stand_in(tmp_path):
    """A directory with an empty module torch, to have Python's own traceback of a program that imports it."""
    (tmp_path / "empty").mkdir(exist_ok=True)
    (tmp_path / "empty" / "torch.py").write_text("")
    return tmp_path / "empty"


def test_a_program_that_is_not_there(tmp_path):
    done = run(tmp_path, "", options=["missing.py"])
    assert done.returncode == 2 and "missing.py" in done.stderr


@pytest.mark.parametrize("use, name", [
    ("torch.lobpcg", "torch.lobpcg"), ("torch.ones(2).to_mkldnn()", "torch.Tensor.to_mkldnn"), ("torch.jit.load('f')", "torch.jit.load"),
    ("torch.nn.parallel.DistributedDataParallel(1)", "torch.nn.parallel.DistributedDataParallel"),
])
def test_what_is_missing_is_named(tmp_path, use, name):
    done = run(tmp_path, f"import torch\ntry:\n    {use}\nexcept NotImplementedError as error:\n    print(error)")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(f"{name}: not in onestep")


def test_hasattr_answers_as_in_pytorch(tmp_path):
    program = ("import torch\nprint(hasattr(torch, 'lobpcg'), hasattr(torch.nn.functional, 'scaled_dot_product_attention'), "
               "hasattr(torch.Tensor, 'to_mkldnn'))")
    assert out(tmp_path, program) == "False True False\n"


def test_a_missing_import_can_be_caught(tmp_path):
    program = "try:\n    from torch import lobpcg\nexcept ImportError as error:\n    print(type(error).__name__)"
    assert out(tmp_path, program) == "MissingModule\n"


def test_the_version_is_pytorchs(tmp_path):
    program = "import torch\nfrom importlib.metadata import version\nprint(version('torch') == torch.__version__, torch.__version__.split('.')[0])"
    assert out(tmp_path, program) == "True 2\n"


def test_after_pytorch_it_refuses(tmp_path):
    program = "import sys, types\nsys.modules['torch'] = types.ModuleType('torch')\nimport onestep.as_torch"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, env=os.environ | {"PYTHONPATH": str(PACKAGE)})
    assert "torch is imported already" in done.stderr


def test_coverage(tmp_path):
    program = "import torch\nfrom torch import nn\nx = torch.zeros(2).cos()\ny = torch.lobpcg(nn.Linear)\nz = x.to_mkldnn()\nraise SystemExit(3)"
    done = run(tmp_path, program, options=["--coverage"])
    assert done.returncode == 1, done.stderr
    lines = done.stdout.splitlines()
    there = {line.split()[1] for line in lines if line.startswith("there")}
    missing = {line.split()[1].rstrip(":") for line in lines if line.startswith("missing")}
    assert there == {"torch", "torch.nn", "torch.zeros", "torch.nn.Linear", "torch.Tensor.cos"}
    assert missing == {"torch.lobpcg", "torch.Tensor.to_mkldnn"}
    assert lines[-1].startswith("5 of 7 names are there")


def test_coverage_knows_the_class_tensor_and_what_an_argument_hides(tmp_path):
    program = """
import torch
import torch._inductor.config as config

def f(x: torch.Tensor, config):
    return config.n_layer
"""
    done = run(tmp_path, program, options=["--coverage"])
    assert done.returncode == 0 and "n_layer" not in done.stdout and done.stdout.splitlines()[-1].startswith("3 of 3 names are there")


def test_a_function_stays_one_beside_the_module_of_its_name(tmp_path):
    program = "import torch\nfrom torch.autograd import gradcheck\nimport torch.autograd.gradcheck as m\nprint(gradcheck is torch.autograd.gradcheck, callable(gradcheck))"
    assert out(tmp_path, program) == "True True\n"


def test_names_that_programs_import_and_decorate_with(tmp_path):
    program = """
import torch
from torch import nn
from torch.utils import _pytree

class Layer(nn.Module):
    flag: torch.jit.Final[bool]

    @torch.jit.ignore
    def one(self): return 1

    @torch.jit.unused
    def two(self): return 2

print(Layer().one() + Layer().two(), torch.jit.is_scripting(), torch.jit.script(max)(1, 2))
print(torch.fx.wrap(len)([1]), torch.compiler.allow_in_graph(len)([1]))
print({torch.int8: 1, torch.float8_e4m3fn: 2}[torch.int8], torch.complex64, torch.float8_e4m3fn.is_floating_point)
print(_pytree.tree_map(lambda x: x + 1, {"a": [1, (2, 3)], "b": 4}), _pytree.tree_flatten([1, {"x": (2,)}])[0])
a = [torch.ones(2), torch.ones(1)]
torch._foreach_add_(a, [torch.ones(2), torch.ones(1)], alpha=2)
torch._foreach_addcmul_(a, a, a, 0.5)
torch._foreach_copy_(a, [a[0] + 1, a[1]])
print([x.tolist() for x in torch._foreach_mul(a, [2.0, 3.0])])
print(torch.ones(2).type(torch.LongTensor).tolist(), torch.zeros_like(a[0], memory_format=torch.preserve_format).tolist())
"""
    assert out(tmp_path, program).splitlines() == [
        "3 False 2", "1 1", "1 torch.complex64 True", "{'a': [2, (3, 4)], 'b': 5} [1, 2]", "[[17.0, 17.0], [22.5]]", "[1, 1] [0.0, 0.0]",
    ]  # fmt: skip


def test_weights_from_a_url_are_fetched_once(tmp_path):
    program = """
import os, torch
from torch.hub import load_state_dict_from_url
from torch.utils import model_zoo

torch.save({"weight": torch.arange(3.0)}, "net-0123abcd.pth")
url = "file://" + os.path.abspath("net-0123abcd.pth")
try:
    load_state_dict_from_url(url, progress=False, check_hash=True)
except RuntimeError as error:
    print("expected \\"0123abcd\\"" in str(error), os.listdir(torch.hub.get_dir() + "/checkpoints"))
print(load_state_dict_from_url(url, map_location="cpu")["weight"])
os.remove("net-0123abcd.pth")
print(model_zoo.load_url(url)["weight"], os.listdir(torch.hub.get_dir() + "/checkpoints"))
torch.hub.set_dir("elsewhere")
print(torch.hub.get_dir())
"""
    (tmp_path / "program.py").write_text(program)
    environment = os.environ | {"PYTHONPATH": str(PACKAGE), "TORCH_HOME": str(tmp_path / "home")}
    done = subprocess.run([sys.executable, "-m", "onestep.as_torch", "program.py"], cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert done.stdout.splitlines() == [
        "True []", "tensor([0., 1., 2.])", "tensor([0., 1., 2.]) ['net-0123abcd.pth']", "elsewhere",
    ], done.stderr  # fmt: skip


def test_tensors_as_one_flat_tensor_and_back(tmp_path):
    program = """
import torch
from torch._utils import _flatten_dense_tensors, _unflatten_dense_tensors
parts = [torch.ones(2, 2), torch.tensor(3.0), torch.zeros(1, 2)]
flat = _flatten_dense_tensors(parts)
print(flat.tolist(), [p.tolist() for p in _unflatten_dense_tensors(flat * 2, parts)])
"""
    assert out(tmp_path, program) == "[1.0, 1.0, 1.0, 1.0, 3.0, 0.0, 0.0] [[[2.0, 2.0], [2.0, 2.0]], 6.0, [[0.0, 0.0]]]\n"
