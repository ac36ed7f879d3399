"""The mathematics of the latent key–task model: statements and proofs (`*.md`), and their machine check (`prove`)."""
