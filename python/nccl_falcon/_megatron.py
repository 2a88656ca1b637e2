"""Falcon's plan in the place of Megatron Core's calculator of micro-batches. Needs neither Megatron nor PyTorch."""


class MicroBatchCalculator:
    """Answers as `usual` does, a NumMicroBatchesCalculator of megatron.core.num_microbatches_calculator, but for `get`:
    that gives the plan's number for this replica. Sizes of batches are those of all replicas, which no split changes.

    plan(): the plan in force (nccl_falcon.torch.Plan), or None before the first iteration.

    Megatron weights no gradients: whoever puts this in its place must see to it by the plan's weight.
    """

    def __init__(self, usual, plan, data_parallel_size: int):
        self._usual = usual
        self._plan = plan
        self._replicas = data_parallel_size

    def get(self) -> int:
        plan = self._plan()
        return self._usual.get() if plan is None else plan.micro_batches

    def get_current_global_batch_size(self) -> int:
        return self._usual.get_current_global_batch_size()

    def get_current_running_global_batch_size(self) -> int:
        return self._usual.get_current_running_global_batch_size()

    def get_micro_batch_size(self) -> int:
        return self._usual.get_micro_batch_size()

    def update(self, consumed_samples, consistency_check, verbose=False) -> None:
        """Raises ValueError where the batch grows: the number of micro-batches that Falcon splits is the layout's."""
        before = self._usual.get()
        self._usual.update(consumed_samples, consistency_check, verbose)
        after = self._usual.get()
        if after != before:
            raise ValueError(
                f"the global batch went from {before * self._replicas} to {after * self._replicas} micro-batches; "
                "Falcon splits a fixed number: train with one batch size"
            )
