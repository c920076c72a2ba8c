"""Every storage that a rank's tensors open and close, as an event log.

A TorchDispatchMode sees each operator that autograd, the optimizer and the collectives issue. A
storage is written down when it is first seen and when it dies, rounded to 512 bytes as PyTorch's
caching allocator rounds (c10/cuda/CUDACachingAllocator.cpp, kMinBlockSize). What a storage was for
may become known only later (a matmul's result turns out to be a gradient), so categories are
attached to the allocation, not to the event, and the log is summed up afterwards (timeline.py).
"""
import weakref

import torch
from torch.distributed.tensor import DTensor
from torch.distributed.tensor._sharding_prop import ShardingPropagator
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_iter

BLOCK = 512
STATES = ("weights", "adapters", "gradients", "optimizer_states", "inputs")


def rounded(size):
    return (size + BLOCK - 1) // BLOCK * BLOCK


def local(tensor):
    while True:
        if isinstance(tensor, DTensor):
            tensor = tensor._local_tensor
        elif hasattr(tensor, "elem") and not isinstance(tensor.elem, property):
            tensor = tensor.elem  # AsyncCollectiveTensor
        else:
            return tensor


class Allocation:
    __slots__ = ("category", "phase", "reference", "bytes", "maker")

    def __init__(self, category, phase, size):
        self.category, self.phase, self.bytes = category, phase, size
        self.maker = None


class Tracker(TorchDispatchMode):
    def __init__(self, vocabulary, logit_elements):
        super().__init__()
        self.vocabulary, self.logit_elements = vocabulary, logit_elements
        self.allocations = []  # by number
        self.numbers = {}  # id of a living storage: its number
        self.log = []  # (number, change in bytes) or ("mark", name)
        self.phase = "load"
        self.scope = []
        self.blind = False  # DTensor works out shapes on tensors that nothing ever holds

    # What happened ------------------------------------------------------------------------------
    def mark(self, name):
        self.log.append(("mark", name))

    def enter(self, phase):
        self.mark(phase)
        self.phase = phase

    def note(self, tensor, category):
        """The allocation of a tensor, opened under `category` if it is new."""
        storage = local(tensor).untyped_storage()
        key = id(storage)
        number = self.numbers.get(key)
        if number is not None and self.allocations[number].reference() is storage:
            return self.allocations[number]
        number = len(self.allocations)
        made = Allocation(category, self.phase, 0)
        made.reference = weakref.ref(storage, lambda _, k=key, n=number: self.died(k, n))
        self.allocations.append(made)
        self.numbers[key] = number
        self.resize(number, storage.size())
        return made

    def file(self, tensor, category):
        self.note(tensor, category).category = category

    def resize(self, number, size):
        made = self.allocations[number]
        change = rounded(size) - made.bytes
        made.bytes += change
        if change:
            self.log.append((number, change))

    def died(self, key, number):
        self.resize(number, 0)
        if self.numbers.get(key) == number:
            del self.numbers[key]

    def category_of(self, tensor):
        number = self.numbers.get(id(local(tensor).untyped_storage()))
        return None if number is None else self.allocations[number].category

    # What it was for ----------------------------------------------------------------------------
    def guess(self, func, inputs, tensor):
        if self.scope:
            return self.scope[-1]
        if tensor.dim() and tensor.shape[-1] in self.vocabulary:
            if tensor.numel() >= self.logit_elements:
                return "logits"
        name = func.name()
        seen = {self.category_of(t) for t in inputs}
        if name == "aten::_to_copy" and seen <= {"weights", "adapters", "gathered_parameters"}:
            return "gathered_parameters"  # autocast's 16-bit copies
        if self.phase == "backward" and not torch.is_grad_enabled():
            stored = {"weights", "adapters", "gathered_parameters"}
            product = name in ("aten::mm", "aten::_grouped_mm") and not seen & stored
            if product or name == "aten::embedding_dense_backward" or seen == {"gradients"}:
                return "gradients"
            return "temporaries"
        if name.startswith(("_c10d_functional::", "c10d::")):
            return "communication"
        if self.phase == "backward":
            return "recompute"
        return "temporaries"

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        if any(issubclass(t, DTensor) for t in types):
            return NotImplemented
        out = func(*args, **(kwargs or {}))
        if self.blind:
            return out
        inputs = None
        for t in tree_iter(out):
            if not isinstance(t, torch.Tensor) or t.device.type != "cuda":
                continue
            if id(t.untyped_storage()) in self.numbers:
                continue
            if inputs is None:
                inputs = [i for i in tree_iter((args, kwargs)) if isinstance(i, torch.Tensor)]
            made = self.note(t, self.guess(func, inputs, t))
            made.maker = (func.name(), tuple(t.shape), str(t.dtype)[6:])
        return out

    def __enter__(self):
        self.plain_resize = torch.UntypedStorage.resize_
        tracker = self

        def resize(storage, size):
            out = tracker.plain_resize(storage, size)
            number = tracker.numbers.get(id(storage))
            if number is not None:
                tracker.resize(number, size)
            return out

        torch.UntypedStorage.resize_ = resize
        self.plain_shapes = ShardingPropagator._propagate_tensor_meta_non_cached

        def shapes(propagator, *args, **kwargs):
            tracker.blind = True
            try:
                return tracker.plain_shapes(propagator, *args, **kwargs)
            finally:
                tracker.blind = False

        ShardingPropagator._propagate_tensor_meta_non_cached = shapes
        return super().__enter__()

    def __exit__(self, *exception):
        torch.UntypedStorage.resize_ = self.plain_resize
        ShardingPropagator._propagate_tensor_meta_non_cached = self.plain_shapes
        return super().__exit__(*exception)
