raise RuntimeError("mine")
