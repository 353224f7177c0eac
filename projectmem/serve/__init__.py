"""The resident hook: the same answers as the command's, without starting a process for each. See server.py."""
