"""Nodes: the machines that grade. Each has a token, which signs what it sends and fetches the bundles it needs."""
