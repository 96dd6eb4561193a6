"""What a term comes to: which submission counts where, what it costs in late days, and the grades that follow.

latedays    how late days are spent: pure
"""
