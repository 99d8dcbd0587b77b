"""Optimizer: parameters in groups with their settings, and the state of each."""

from __future__ import annotations

import functools
import warnings
from collections import OrderedDict, defaultdict
from copy import deepcopy
from typing import Any, Callable, Dict, List, Optional, Tuple

import onestep
from onestep import _C
from onestep.nn.modules._names import typename
from onestep.nn.modules._walk import zero_grads
from onestep.utils.hooks import RemovableHandle, added

Tensor = _C.Tensor


class _RequiredParameter:
    """The default of a setting that every group must have."""

    def __repr__(self) -> str:
        return "<required parameter>"


required = _RequiredParameter()


_all_pre_hooks: OrderedDict = OrderedDict()
_all_post_hooks: OrderedDict = OrderedDict()


def register_optimizer_step_pre_hook(hook: Callable) -> RemovableHandle:
    """hook(optimizer, args, kwargs) before each step of every optimizer."""
    return added(_all_pre_hooks, hook)


def register_optimizer_step_post_hook(hook: Callable) -> RemovableHandle:
    """hook(optimizer, args, kwargs) after each step of every optimizer."""
    return added(_all_post_hooks, hook)


def _with_hooks(step: Callable) -> Callable:
    """The step with the hooks before and after it; one before may give it other arguments, as (args, kwargs). An optimizer
    around another one may have none, because it did not call `Optimizer.__init__`."""

    @functools.wraps(step)
    def hooked(self: "Optimizer", *args: Any, **kwargs: Any) -> Any:
        for hook in [*_all_pre_hooks.values(), *vars(self).get("_optimizer_step_pre_hooks", {}).values()]:
            changed = hook(self, args, kwargs)
            if changed is not None:
                if not (isinstance(changed, tuple) and len(changed) == 2):
                    raise RuntimeError(f"{hook} must return None or a tuple of (new_args, new_kwargs), but got {changed}.")
                args, kwargs = changed
        result = step(self, *args, **kwargs)
        for hook in [*vars(self).get("_optimizer_step_post_hooks", {}).values(), *_all_post_hooks.values()]:
            hook(self, args, kwargs)
        return result

    return hooked


class Optimizer:
    """The base of all optimizers: `param_groups` (dicts), `state` by parameter, and `step`."""

    def __init__(self, params: Any, defaults: Dict[str, Any]) -> None:
        if isinstance(params, Tensor):
            raise TypeError(
                f"params argument given to the optimizer should be an iterable of Tensors or dicts, but got {typename(params)}"
            )
        if defaults.get("differentiable"):
            raise NotImplementedError(
                "differentiable=True is not supported: no gradient passes a step (compute p - lr * autograd.grad(loss, p) instead)"
            )
        if defaults.get("fused") and defaults.get("foreach"):
            raise RuntimeError("`fused` and `foreach` cannot be `True` together.")
        self.defaults = defaults
        self.state: Dict[Tensor, Dict[str, Any]] = defaultdict(dict)
        self.param_groups: List[Dict[str, Any]] = []
        self._make_hooks()
        groups = list(params)
        if not groups:
            raise ValueError("optimizer got an empty parameter list")
        for group in groups if isinstance(groups[0], dict) else [{"params": groups}]:
            self.add_param_group(group)

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if "step" in vars(cls):
            cls.step = _with_hooks(cls.step)  # type: ignore[method-assign]

    def _make_hooks(self) -> None:
        self._optimizer_step_pre_hooks: OrderedDict = OrderedDict()
        self._optimizer_step_post_hooks: OrderedDict = OrderedDict()
        self._state_hooks: Dict[str, OrderedDict] = {name: OrderedDict() for name in ("save", "saved", "load", "loaded")}

    def add_param_group(self, param_group: Dict[str, Any]) -> None:
        """Adds parameters with settings of their own; what is not given is the optimizer's default."""
        if not isinstance(param_group, dict):
            raise TypeError(f"param_group must be a dict, but got {type(param_group)}")
        params = param_group["params"]
        if isinstance(params, set):
            raise TypeError(
                "optimizer parameters need to be organized in ordered collections, but "
                "the ordering of tensors in sets will change between runs. Please use a list instead."
            )
        params = [params] if isinstance(params, Tensor) else list(params)
        if params and all(isinstance(p, tuple) for p in params):
            param_group["param_names"] = [name for name, _ in params]
            params = [p for _, p in params]
        for p in params:
            if not isinstance(p, Tensor):
                raise TypeError(f"optimizer can only optimize Tensors, but one of the params is {typename(p)}")
            if not (p.is_leaf or p.retains_grad):
                raise ValueError("can't optimize a non-leaf Tensor")
        if len({id(p) for p in params}) < len(params):
            warnings.warn("optimizer contains a parameter group with duplicate parameters", stacklevel=3)
        param_group["params"] = params
        for name, default in self.defaults.items():
            if default is required and name not in param_group:
                raise ValueError(f"parameter group didn't specify a value of required optimization parameter {name}")
            param_group.setdefault(name, default)
        known = {id(p) for group in self.param_groups for p in group["params"]}
        if not known.isdisjoint(id(p) for p in params):
            raise ValueError("some parameters appear in more than one parameter group")
        self.param_groups.append(param_group)

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Drops all gradients, or fills them with 0."""
        for group in self.param_groups:
            zero_grads(group["params"], set_to_none)

    @_with_hooks
    def step(self, closure: Optional[Callable[[], Any]] = None) -> Any:
        """One update of all parameters that have a gradient; `closure` computes the loss (and gradients) before."""
        loss = None
        with onestep.no_grad():
            if closure is not None:
                with onestep.enable_grad():
                    loss = closure()
            for group in self.param_groups:
                self._update(group)
        return loss

    def _update(self, group: Dict[str, Any]) -> None:
        """The update of one group."""
        raise NotImplementedError

    def _with_grads(self, group: Dict[str, Any], decayed: bool = False, stateless: bool = False) -> List[tuple]:
        """(parameter, gradient, state), the gradient's sign turned by `maximize`, and with `decayed` its weight decay added."""
        turned, decay = group.get("maximize"), group["weight_decay"] if decayed else 0
        rows = []
        for p in group["params"]:
            if p.grad is not None:
                grad = -p.grad if turned else p.grad
                rows.append((p, grad.add(p, alpha=decay) if decay else grad, {} if stateless else self.state[p]))
        return rows

    def register_step_pre_hook(self, hook: Callable) -> RemovableHandle:
        """hook(optimizer, args, kwargs) before each step; may return other (args, kwargs)."""
        return added(self._optimizer_step_pre_hooks, hook)

    def register_step_post_hook(self, hook: Callable) -> RemovableHandle:
        """hook(optimizer, args, kwargs) after each step."""
        return added(self._optimizer_step_post_hooks, hook)

    def register_state_dict_pre_hook(self, hook: Callable, prepend: bool = False) -> RemovableHandle:
        """hook(optimizer) before state_dict."""
        return added(self._state_hooks["save"], hook, prepend)

    def register_state_dict_post_hook(self, hook: Callable, prepend: bool = False) -> RemovableHandle:
        """hook(optimizer, state_dict) after state_dict; may return another one."""
        return added(self._state_hooks["saved"], hook, prepend)

    def register_load_state_dict_pre_hook(self, hook: Callable, prepend: bool = False) -> RemovableHandle:
        """hook(optimizer, state_dict) before load_state_dict; may return another one."""
        return added(self._state_hooks["load"], hook, prepend)

    def register_load_state_dict_post_hook(self, hook: Callable, prepend: bool = False) -> RemovableHandle:
        """hook(optimizer) after load_state_dict."""
        return added(self._state_hooks["loaded"], hook, prepend)

    def _call_state_hooks(self, name: str, *state: Any) -> Any:
        """Calls them with the state_dict, if there is one; returns it, or what a hook made of it."""
        for hook in list(vars(self).get("_state_hooks", {}).get(name, {}).values()):
            changed = hook(self, *state)
            state = state if changed is None else (changed,)
        return state[0] if state else None

    # ---- states -----------------------------------------------------------------------------------------------------
    def state_dict(self) -> Dict[str, Any]:
        """{"state": by number of the parameter, "param_groups": with numbers for parameters}."""
        self._call_state_hooks("save")
        numbers: Dict[int, int] = {}
        groups = []
        for group in self.param_groups:
            for p in group["params"]:
                numbers.setdefault(id(p), len(numbers))
            groups.append(
                {**{k: v for k, v in group.items() if k != "params"}, "params": [numbers[id(p)] for p in group["params"]]}
            )
        state = {numbers[id(p)] if isinstance(p, Tensor) else p: value for p, value in self.state.items()}
        return self._call_state_hooks("saved", {"state": state, "param_groups": groups})

    def load_state_dict(self, state_dict: Dict[str, Any]) -> None:
        """Takes over settings and state, in the dtypes of the parameters here."""
        state_dict = self._call_state_hooks("load", dict(state_dict))
        given = state_dict["param_groups"]
        if len(given) != len(self.param_groups):
            raise ValueError("loaded state dict has a different number of parameter groups")
        if any(len(a["params"]) != len(b["params"]) for a, b in zip(given, self.param_groups)):
            raise ValueError("loaded state dict contains a parameter group that doesn't match the size of optimizer's group")
        by_number: dict = {}
        for theirs, ours in zip(given, self.param_groups):
            by_number.update(zip(theirs["params"], ours["params"]))
            kept = {"params": ours["params"]}
            if "param_names" in ours and "param_names" not in theirs:
                kept["param_names"] = ours["param_names"]
            ours_new = {**deepcopy({k: v for k, v in theirs.items() if k != "params"}), **kept}
            ours.clear()
            ours.update(ours_new)
        self.state = defaultdict(dict)
        for key, value in state_dict["state"].items():
            self.state[by_number.get(key, key)] = self._taken_over(by_number.get(key), value)
        self._call_state_hooks("loaded")

    def _taken_over(self, p: Optional[Tensor], value: Any, key: str = "") -> Any:
        if isinstance(value, Tensor):
            own = value.detach().clone()
            return own.to(p.dtype) if p is not None and key != "step" and p.is_floating_point() else own
        if isinstance(value, dict):
            return {k: self._taken_over(p, v, k) for k, v in value.items()}
        if isinstance(value, (list, tuple)):
            return type(value)(self._taken_over(p, v) for v in value)
        return value

    def __getstate__(self) -> Dict[str, Any]:
        return {"defaults": self.defaults, "state": self.state, "param_groups": self.param_groups}

    def __setstate__(self, state: Dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._make_hooks()

    def __repr__(self) -> str:
        text = type(self).__name__ + " ("
        for i, group in enumerate(self.param_groups):
            text += f"\nParameter Group {i}\n"
            text += "".join(f"    {key}: {group[key]}\n" for key in sorted(group) if key != "params")
        return text + ")"


def _check(condition: bool, what: str, value: Any) -> None:
    if not condition:
        raise ValueError(f"Invalid {what}: {value}")


def _apart(rows: List[tuple]) -> Tuple[List[tuple], List[tuple]]:
    """Rows of parameters that kernels update, and those of halves, which are updated op by op as in PyTorch."""
    return [row for row in rows if row[0].element_size() != 2], [row for row in rows if row[0].element_size() == 2]


def _plain(value: Any) -> float:
    """A number, also where a scalar tensor was given."""
    return value.item() if isinstance(value, Tensor) else value
