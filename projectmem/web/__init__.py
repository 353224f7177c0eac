"""The web page: what the log knows, for a person who audits or works with agents, in a browser on this machine. Read-only.

A process of its own (run.py), so that the resident hook stays as light as it is. doors.py decides who gets in, pages.py answers,
asking.py asks the use cases that the command line asks too, jobs.py keeps long answers from holding a page up, showing.py and
templates/ make HTML of it.
"""
