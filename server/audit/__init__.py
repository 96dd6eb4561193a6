"""The trail: who changed what, when and why."""
