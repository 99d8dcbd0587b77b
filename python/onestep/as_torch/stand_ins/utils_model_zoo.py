"""torch.utils.model_zoo: the older name of what torch.hub has."""

from onestep.as_torch.stand_ins.hub import load_state_dict_from_url as load_url

__all__ = ["load_url"]
