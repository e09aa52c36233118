"""EXL8xx: what a model says about the hardware that it runs on."""
