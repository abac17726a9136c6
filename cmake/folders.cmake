# The folders of the library from the ground up: each includes those before it only, as tests/folders.sh checks. Scripts
# read this file, too.
set(core_folders base kernels graph ops autograd models train)
set(component_folders files mpi tokenizers pretrained generation retrieval onnx report)
