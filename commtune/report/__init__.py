"""A campaign as one self-contained page and pictures: the answer, the evidence, the method."""
