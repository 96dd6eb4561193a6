"""Nodes: the machines that grade. Each has a key pair, whose public half the server keeps."""
