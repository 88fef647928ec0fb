"""Stage ``reference``: run the framework in fp32 once over the dataloader and store its inputs and outputs.

The gates later compare candidates with these outputs, so ``publish`` judges them (``soundness``). What a
Python step must be worth is checked while it is loaded, by ``produce`` (``step_checks``).
"""
