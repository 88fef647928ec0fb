"""A PyTorch module as it was written: without what torch.compile put around it, and without gradients."""

import torch


def without_compilation(module: torch.nn.Module) -> torch.nn.Module:
    """Return the module without torch.compile, which is also taken off the modules in it.

    A conversion takes nothing of it, and the reference would compile again for each shape, for which the image has no
    compiler.
    """
    module = _original(module)
    for each in list(module.modules()):
        # What module.compile() sets.
        if getattr(each, "_compiled_call_impl", None) is not None:
            each._compiled_call_impl = None  # noqa: SLF001 - no public name
        for name, child in list(each.named_children()):
            if (original := _original(child)) is not child:
                setattr(each, name, without_compilation(original))
    return module


def _original(module: torch.nn.Module) -> torch.nn.Module:
    inner = getattr(module, "_orig_mod", None)
    return inner if isinstance(inner, torch.nn.Module) else module


def stop_gradients(module: torch.nn.Module) -> None:
    """Let no parameter, buffer or plain tensor of a module want a gradient, which no tracer takes for a constant."""
    # One by one: a module of TorchScript refuses requires_grad_.
    for parameter in module.parameters():
        parameter.requires_grad_(False)
    for each in module.modules():
        held = [*each.named_buffers(recurse=False), *vars(each).items()]
        for name, value in held:
            if isinstance(value, torch.Tensor) and value.requires_grad:
                setattr(each, name, value.detach())
