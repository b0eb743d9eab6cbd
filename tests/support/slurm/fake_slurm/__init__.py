"""Small programs in the place of Slurm's, for what a real Slurm can't be made to do, or not soon.

They keep all they know in one file; time passes when a test says so. ``driver.FakeSlurm`` is what
tests use. Nothing is imported here: every call of a program would pay for it.
"""
