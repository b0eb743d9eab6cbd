"""Changes no table: an upgrade makes the views anew, which now call profiles withdrawn."""

revision = "r0011"
down_revision = "r0010"


def upgrade() -> None:
    pass
