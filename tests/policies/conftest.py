"""Settings of the policy tests."""

import torch

# Inside a busy machine a second thread makes these small networks many times slower.
torch.set_num_threads(1)
