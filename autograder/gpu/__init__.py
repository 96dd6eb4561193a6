"""What judge and runner both need on a GPU: device memory that travels as a file descriptor.

Memory comes from CUDA's virtual-memory API: an allocation is a *handle*, which exports as a POSIX descriptor, and is
mapped where it is used. Descriptors pass between users and across a container's wall, where the older `cudaIpc*` calls
fail. `autograder.gpu.driver` is the driver, `autograder.gpu.tensors` makes tensors of what is mapped, and
`autograder.lanes` says which lane a device belongs to. cuda-bindings and torch are imported when a GPU is used, not
before.
"""
