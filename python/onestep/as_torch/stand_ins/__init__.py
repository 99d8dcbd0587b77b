"""Small modules for what PyTorch programs ask of a machine, answered for a CPU."""
