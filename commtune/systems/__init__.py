"""System descriptions: facts about a machine, with their sources."""
