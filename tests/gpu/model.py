"""The model that the server's image serves: a small 3D U-Net, whose convolutions TF32 would round."""

from triton_converters.contract.results import Signature, Tensor

MODEL = "unet3d"
SIGNATURE = Signature((Tensor("x", "FP32", (4, -1, -1, -1)),), (Tensor("y", "FP32", (3, -1, -1, -1)),), 4)
