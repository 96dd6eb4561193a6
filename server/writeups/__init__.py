"""Write-ups: texts that a rung asks for beside the kernel."""
