"""How long a test waits for what must come: a guard against hanging, never a measure. How fast a machine is decides no test."""

PATIENCE = 300  # seconds
