"""`python -m projectmem` is the command line."""

from projectmem.cli import main

main()
